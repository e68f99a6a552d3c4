"""The paper's own rule for ceilings (ScaleRL §4, A.5): two A within 0.02 are equal, regardless of their intervals."""

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE

PAPER_MARGIN = 0.02
"""Margin within which the paper takes two A as equal (ScaleRL §4)."""
PAPER_RULE = f"±{PAPER_MARGIN} rule"


def paper_rule(delta: float | None) -> str:
    """The verdict on a difference in A; `delta` is None if an A has no upper end."""
    if delta is None:
        return CANNOT_TELL
    if abs(delta) <= PAPER_MARGIN:
        return NO_DIFFERENCE
    return "ceiling up" if delta > 0 else "ceiling down"
