"""Remarks on runs whose score may be the best so far: it never falls, and stands still before it rises by much.

    evaluated   .31  .35  .33  .36  .34  .35  .39
    best so far .31  .35  .35  .36  .36  .36  .39

The score of each evaluation falls by chance now and then. A smooth curve that is rounded also stands still, but then
rises by one unit of its last digit.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ablations.findings.remark import Remark, by_variant, remark_on, seeds_said
from ablations.readings.fitted_run import FittedRun

FEWEST_SCORES, FEWEST_REPEATS = 20, 6
LEAP_FROM, FEWEST_LEAPS = 2.5, 4
"""A rise after a standstill counts from this many times the smallest rise of the run; this many of them are needed."""


def remarks_on_best_so_far(runs: Sequence[FittedRun]) -> Iterator[Remark]:
    """A remark for each variant with such runs."""
    for name, some, number in by_variant(runs, lambda run: run.curve is not None and _is_best(run.curve.score)):
        seeds = f"seed{'s' * (len(some) > 1)} {', '.join(str(run.seed) for run in some)}"
        who = seeds_said(some, number)
        clause = f"the score of {who} may be the best so far ({seeds}: it repeats and never falls)"
        after = " The best of many scores flatters a run, and the more evaluations, the more; read the score of each."
        yield remark_on("best so far", name, some, number, clause, after, weight="warning")


def _is_best(score: np.ndarray) -> bool:
    """True if a score never falls, repeats, and rises by several units after repeats; 0 and 1 repeat by themselves."""
    score = np.round(score, 9)  # equal sums may differ in their last digits
    changes = np.diff(score[(score > 0) & (score < 1)])
    if changes.size + 1 < FEWEST_SCORES or np.diff(score).min() < 0 or not changes.any():
        return False
    leaps = (changes[:-1] == 0) & (changes[1:] > LEAP_FROM * changes[changes > 0].min())
    return int(np.sum(changes == 0)) >= FEWEST_REPEATS and int(np.sum(leaps)) >= FEWEST_LEAPS
