"""Marks after the numbers of a comparison, and what they mean."""

from collections.abc import Iterable

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE, PROVISIONAL, Answer, Question
from ablations.findings.results import Results

HELD_MARK = "*"
"""Mark after a number whose verdict also holds by the joint interval."""
MARKS = {NO_DIFFERENCE: "=", CANNOT_TELL: "?", PROVISIONAL: "?"}
"""Mark after a number that shows no difference."""
REFERENCE_MARK = "°"
"""Mark after the reference's value on an axis."""
COLLAPSED_MARK = "!"
"""Mark after the name of a variant with a collapsed or fallen seed."""


def marked_answer(answer: Answer, *, is_joint: bool) -> str:
    """An estimate with its interval and the mark of its verdict, or a blank so that the numbers stay aligned."""
    held = HELD_MARK if is_joint and answer.is_held else " "
    return f"{answer.cell}{MARKS.get(answer.verdict, held)}"


def limits_said(questions: Iterable[Question]) -> str:
    """The widest intervals that say "no difference": `±0.025 (level), ±0.04 (ceiling)`."""
    return ", ".join(f"{one.narrow} ({one.name})" for one in questions)


def marks_said(results: Results) -> str:
    """The meaning of the marks that the table shows, with the limit between `=` and `?`."""
    lines = results.comparison.variants if results.comparison else ()
    answers = [one for line in lines for one in line.answers.values()]
    comparisons = len(lines) - 1
    alike, wide = (
        [one for one in results.questions if any(said.question is one and said.verdict == verdict for said in answers)]
        for verdict in (NO_DIFFERENCE, CANNOT_TELL)
    )
    is_provisional = any(one.verdict == PROVISIONAL for one in answers)
    wider = "wider" if alike else f"wider than {limits_said(wide)}"
    said = (
        (
            HELD_MARK,
            f"holds jointly for all {comparisons} comparisons",
            comparisons > 1 and any(one.is_held for one in answers),
        ),
        ("=", f"no difference, at most {limits_said(alike)}", alike),
        ("?", "cannot tell" if is_provisional else f"cannot tell, {wider} or open", wide or is_provisional),
        (COLLAPSED_MARK, "a seed collapsed or fell", any(line.fit_verdict in ("collapsed", "fell") for line in lines)),
    )
    return "; ".join(f"{mark} {meaning}" for mark, meaning, is_shown in said if is_shown)
