"""Whether the seeds of a variant rise, judged together, and the verdict on all of them.

A seed that wanders need not rise by itself, though all seeds together leave no doubt. A seed that stays flat is another
matter: it has no curve to average, and its variant none either.
"""

from collections.abc import Sequence

from ablations.fit.asymptote import Verdict, verdict_on_interval
from ablations.fit.fitting import rises_beyond_chance
from ablations.fit.result import Fit


def rise_together(fits: Sequence[Fit]) -> bool:
    """True if no seed is flat, and the curves of all explain their readings better than flat lines do."""
    return all(fit.verdict != "no rise" for fit in fits) and rises_beyond_chance([fit.rise_deviance for fit in fits])


def verdict_together(fits: Sequence[Fit], ceiling_lo: float, ceiling_hi: float | None) -> Verdict:
    """The verdict on all seeds: a collapse or a flat curve of any one of them, else that on their mean ceiling."""
    verdicts = {fit.verdict for fit in fits}
    if "collapsed" in verdicts:
        return "collapsed"
    if not rise_together(fits):
        return "no rise" if "no rise" in verdicts else "too noisy to tell"
    return verdict_on_interval(ceiling_lo, ceiling_hi)
