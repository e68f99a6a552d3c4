"""Judges of answers given as text, without the thinking before them; none of them loads torch.

math_answer   mathematics, by math-verify in a worker process with a time limit
  math_equal    equality of answers; runs in the worker
  math_parser   LaTeX to SymPy
  math_values   equality of values
  math_lists    named values beside a bare list
  math_families values with any integer or constant: general solutions, residue classes, integrals
  math_reading  parts of an answer besides its value: letter, name, sign, unit, base, ratio, words
  math_notation one notation for many ways of writing: Unicode marks, spacing, currency
  math_phrases  one form for usual phrases, marks of angles and rows of digits
  math_latex    values in the notation of the parser
  math_units    names and sizes of units, and words that change a number
  math_prose    values stated in a sentence
code_tests    programs, by tests in the sandbox
  code_harness  code around the program in the sandbox
python_tests  programs, by Python tests that run in a separate sandbox
  python_test_wire       values sent between the two, as lines of JSON
  python_test_processes  code in the tests' sandbox: what they use of the program asks for it
  python_test_program    code in the program's sandbox, which answers
gym_score     scores of `reasoning-gym`; runs in the worker
judge_worker  processes of mathematics and of scores, with time limit and restart
choice        the letter of a multiple-choice answer, as in ARC and HellaSwag
qa            normalised exact match and F1 against several answers, as in NaturalQuestions
  qa_values     dates, amounts, lists and abbreviations in other words
"""
