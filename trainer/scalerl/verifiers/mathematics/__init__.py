"""Judge of mathematical answers: finds the answer in a response, reads both answers, compares their values.

answer      the answer that a response states; asks the worker for the verdict
  prose     values stated in a sentence
equality    the verdict on two answers; runs in the worker
  families  values with any integer or constant: general solutions, residue classes, integrals
  lists     named values beside a bare list
  values    equality of SymPy values
  parser    LaTeX to SymPy
reading     parts of an answer besides its value: letter, name, sign, unit, base, ratio, words
  notation  one notation for many ways of writing: Unicode marks, spacing, currency
  phrases   one form for usual phrases, marks of angles and rows of digits
  latex     values in the notation of the parser
  units     names and sizes of units, and words that change a number
  dates     dates and times of day, one value for all usual forms
"""
