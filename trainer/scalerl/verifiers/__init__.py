"""The judges of answers given as text, without the thinking before them; none of them loads torch.

math_answer   mathematics, by math-verify in a worker process with a time limit
  math_equal    which answers count as equal; runs in the worker
  math_parser   LaTeX to SymPy
  math_values   when the values of two of them are equal
  math_reading  what an answer says beside its value: a letter, a name, a sign, a unit, a base, a ratio, words
  math_notation one notation for what answers write in several: marks of Unicode, spacing, currency
  math_latex    values in the notation of the parser
  math_units    names and sizes of units, and words that change a number
  math_prose    the values that a sentence states
  worker        the processes, their time limit and their restart
code_tests    programs, by tests in the sandbox
  code_harness  what runs around the program in there
python_tests  programs, by tests that are Python text, which run in a sandbox of their own
  python_test_wire       what crosses between the two: values as lines of JSON
  python_test_processes  what runs in both sandboxes: tests that ask, and the program that answers
choice        the letter of a multiple-choice answer, as in ARC and HellaSwag
qa            normalised exact match and F1 against several answers, as in NaturalQuestions
"""
