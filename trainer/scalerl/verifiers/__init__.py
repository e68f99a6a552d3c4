"""The judges of answers given as text; none of them loads torch.

math_answer   mathematics, by math-verify in a worker process with a time limit
  math_equal    which answers count as equal; runs in the worker
  math_reading  what an answer says beside its value: percent sign, degree sign, unit, base, words
  worker        the processes, their time limit and their restart
code_tests    programs, by tests in the sandbox
  code_harness  what runs around the program in there
choice        the letter of a multiple-choice answer, as in ARC and HellaSwag
qa            normalised exact match and F1 against several answers, as in NaturalQuestions
"""

START_THINK = "<think>"
END_THINK = "</think>"


def strip_thinking(text: str) -> str:
    """What follows the last end of thinking: the whole text of one that never thinks, nothing if thinking never ends.

    `strip_thinking("<think>2+2</think>4")` is "4", `strip_thinking("<think>2+2 is 4")` is "".
    """
    answer = text.rpartition(END_THINK)[2]
    return "" if START_THINK in answer else answer
