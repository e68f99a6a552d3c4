"""Marks behind the numbers of a comparison, and what they mean."""

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE, PROVISIONAL, Answer
from ablations.findings.results import Results

HELD_MARK = "*"
"""Mark behind a number whose verdict also holds by the joint interval."""
MARKS = {NO_DIFFERENCE: "=", CANNOT_TELL: "?", PROVISIONAL: "?"}
"""Mark behind a number that shows no difference."""
REFERENCE_MARK = "°"
"""Mark behind the reference's value of an axis."""
COLLAPSED_MARK = "!"
"""Mark behind the name of a variant with a collapsed seed."""


def marked_answer(answer: Answer, *, is_joint: bool) -> str:
    """An estimate with its interval and the mark of its verdict, or a blank so that the numbers stay aligned."""
    held = HELD_MARK if is_joint and answer.is_held else " "
    return f"{answer.cell}{MARKS.get(answer.verdict, held)}"


def marks_said(results: Results) -> str:
    """The meaning of the marks that the table shows."""
    lines = results.comparison.variants if results.comparison else ()
    answers = [one for line in lines for one in line.answers.values()]
    found, comparisons = {MARKS.get(one.verdict, "") for one in answers}, len(lines) - 1
    said = (
        (HELD_MARK, f"holds for all {comparisons} at once", comparisons > 1 and any(one.is_held for one in answers)),
        ("=", "no difference", "=" in found),
        ("?", "cannot tell", "?" in found),
        (COLLAPSED_MARK, "a seed collapsed", any(line.verdict == "collapsed" for line in lines)),
    )
    return "; ".join(f"{mark} {meaning}" for mark, meaning, is_shown in said if is_shown)
