"""Test whether the seeds of a variant rise together, and the verdict on all of them.

A wandering seed need not rise by itself, even if all seeds together clearly do. A flat seed has no curve to average, so
neither has its variant.
"""

from collections.abc import Sequence

from ablations.fit.asymptote import Verdict, verdict_on_interval
from ablations.fit.fitting import rises_beyond_chance
from ablations.fit.result import Fit


def rise_together(fits: Sequence[Fit]) -> bool:
    """True if no seed is flat or fell, and curves explain the readings of all seeds better than flat lines do."""
    return all(fit.verdict not in ("fell", "no rise") for fit in fits) and rises_beyond_chance(
        [fit.rise_deviance for fit in fits]
    )


def verdict_together(fits: Sequence[Fit], ceiling_lo: float, ceiling_hi: float | None) -> Verdict:
    """The verdict on all seeds: a collapse, a fall or a flat curve, in this order, else the verdict on their mean
    ceiling."""
    verdicts = {fit.verdict for fit in fits}
    gravest: tuple[Verdict, ...] = ("collapsed", "fell", "no rise")
    for verdict in gravest:
        if verdict in verdicts:
            return verdict
    if not rise_together(fits):
        return "too noisy to tell"
    is_rise_seen = rises_beyond_chance([fit.later_rise_deviance for fit in fits])
    return verdict_on_interval(ceiling_lo, ceiling_hi, is_rise_seen=is_rise_seen)
