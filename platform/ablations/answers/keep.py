"""Keep a proposal, discard it, or run it again: a test of one proposal against the best so far that stays valid however
often one looks.

After n runs of the proposal, for n in JUDGED_AT, its mean is compared with that of the best's latest m runs:

    T_n = (mean_p - mean_b) / (s sqrt(1 / n + 1 / m))         Student's t, with the degrees of freedom of s

s is the run-to-run standard deviation within the candidates of the whole campaign; a side that scatters more by an F
test has its own, and its own degrees of freedom. The proposal may be kept with
probability `level` although it is no better. Each look spends a share of that, fixed beforehand (Lan and DeMets 1983,
Discrete sequential boundaries for clinical trials), so by Bonferroni's inequality all looks together spend no more:

    keep         T_n > t(1 - level * KEPT_AT[n])
    worse        T_n < -t(1 - FALSELY_WORSE * LEFT_AT[n])
    no gain      the upper limit of the gain, at 1 - MISSED * LEFT_AT[n], lies below the smallest gain worth having
    spent        none of these at the last look

Nothing else is assumed of the looks: whoever asks after every run and whoever asks once get the same answer from the
same runs, and both err as seldom. `benchmarks/keep_simulated.py` measures it; `promise` says what level a proposal has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import fdtrc, stdtr, stdtrit

from ablations.answers.half_widths import POWER
from ablations.answers.interval import TAIL, Interval
from ablations.answers.repeats import CommonSpread, Repeats
from ablations.answers.run_to_run import STANDS_OUT, run_to_run

JUDGED_AT = (1, 2, 4, 8, 12, 16)
"""Runs of a proposal after which it is judged; the last is the most that is worth running."""
KEPT_AT = (0.0, 0.02, 0.08, 0.5, 0.3, 0.1)
"""Share of the level of a false keep that each look spends; one run is never enough to keep a proposal."""
LEFT_AT = (0.1, 0.1, 0.2, 0.2, 0.2, 0.2)
"""Share of the two probabilities below that each look spends."""
FALSELY_WORSE = 0.02
"""Probability of calling a proposal worse that equals the best."""
MISSED = 0.1
"""Probability of discarding a proposal as without a gain although it has the smallest gain worth having."""
WINDOW = 48
"""Runs of the best that count, the latest: more would narrow the comparison little, and a machine drifts."""
LEAST_OF_BEST = 4
"""Runs of the best after which proposals are judged."""
LEAST_SPREAD = 1e-8
"""Spreads below say that seeds change nothing, or that scores are coarse; nothing is decided by them."""

Conclusion = Literal["again", "keep", "worse", "no gain", "spent"]
CONCLUSIONS: tuple[Conclusion, ...] = ("again", "keep", "worse", "no gain", "spent")


@dataclass(frozen=True, kw_only=True)
class Look:
    """The runs seen at one look: the proposal's first ones, those of the best by then, and all runs by then.

    Look(proposal=(0.61, 0.63), best=(0.59, 0.60, 0.58, 0.61), groups=((0.61, 0.63), (0.59, 0.60, 0.58, 0.61)))
    """

    proposal: tuple[float, ...]
    best: tuple[float, ...]
    groups: tuple[tuple[float, ...], ...]
    """The runs of each candidate of the campaign, which tell the spread."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the runs of a proposal say at their last look.

    Judged(word="again", gain=Interval(estimate=0.021, lo=-0.004, hi=0.046), num_runs=2, enough=8, sd=0.012,
      margin=0.012)
    """

    word: Conclusion
    gain: Interval | None = None
    """Mean of the proposal less that of the best, None before a look and while no candidate's runs differ; intervals of
    all looks hold at once in 95 %."""
    num_runs: int = 0
    """Runs of the proposal that were judged; 0 before the first look."""
    enough: int | None = None
    """Runs in all that keep it with a chance of 80 % if its gain is as large as seen; None if the most are too few."""
    sd: float | None = None
    """Run-to-run standard deviation."""
    margin: float | None = None
    """The smallest gain worth having."""


def judge(looks: Sequence[Look], *, level: float, margin: float | None) -> Judged:
    """Judge a proposal at its looks so far, in order; the first one that decides counts.

    `margin` is the smallest gain worth having, by default one standard deviation.
    """
    found = Judged(word="again")
    for place, look in enumerate(looks):
        found = _judged_at(place, look, level=level, margin=margin)
        if found.word != "again":
            break
    return found


def _judged_at(place: int, look: Look, *, level: float, margin: float | None) -> Judged:
    n, m = len(look.proposal), len(look.best)
    spread = run_to_run([Repeats.of(one, [0.0] * len(one)) for one in look.groups]).within
    if not (spread.freedom > 0 and spread.sd > LEAST_SPREAD):
        return Judged(word="spent" if place == len(JUDGED_AT) - 1 else "again", num_runs=n)
    variances, freedoms = zip(*(_variance(side, spread) for side in (look.proposal, look.best)), strict=True)
    gain, freedom = float(np.mean(look.proposal) - np.mean(look.best)), min(freedoms)
    error = math.sqrt(variances[0] / n + variances[1] / m)
    worth = spread.sd if margin is None else margin
    word = CONCLUSIONS[int(words_at(place, gain, error, freedom, level=level, margin=worth))]
    half = float(stdtrit(freedom, 1 - TAIL * LEFT_AT[place])) * error
    return Judged(
        word=word,
        gain=Interval(estimate=gain, lo=gain - half, hi=gain + half),
        num_runs=n,
        enough=_enough(gain, variances, freedom, m, place, level) if word == "again" else None,
        sd=spread.sd,
        margin=worth,
    )


def _variance(scores: Sequence[float], spread: CommonSpread) -> tuple[float, float]:
    """The variance of a candidate's runs and its degrees of freedom: the common one, or its own if that is larger by an
    F test."""
    own, freedom = (float(np.var(scores, ddof=1)), len(scores) - 1.0) if len(scores) > 1 else (0.0, 0.0)
    if freedom and fdtrc(freedom, spread.freedom, own / spread.sd**2) < STANDS_OUT:
        return own, freedom
    return spread.sd**2, spread.freedom


def words_at(place: int, gain: Any, error: Any, freedom: Any, *, level: Any, margin: Any) -> np.ndarray:
    """Places in CONCLUSIONS of what one look says, for numbers or arrays of gains, their standard errors and so on."""
    error = np.where(np.asarray(error) > LEAST_SPREAD, error, np.inf)
    t = gain / error
    spent, left = KEPT_AT[place] * level, LEFT_AT[place]
    kept = (spent > 0) & (t > stdtrit(freedom, 1 - spent))
    worse = t < -stdtrit(freedom, 1 - FALSELY_WORSE * left)
    without = gain + stdtrit(freedom, 1 - MISSED * left) * error < margin
    return np.select([kept, worse, without], [1, 2, 3], 4 if place == len(JUDGED_AT) - 1 else 0)


def _enough(
    gain: float, variances: Sequence[float], freedom: float, num_best: int, place: int, level: float
) -> int | None:
    """The first later look at which a gain of this size leads to a keep with the chance POWER."""
    for later in range(place + 1, len(JUDGED_AT)):
        best = min(num_best + JUDGED_AT[later] - JUDGED_AT[place], WINDOW)
        error = math.sqrt(variances[0] / JUDGED_AT[later] + variances[1] / best)
        if stdtr(freedom, gain / error - stdtrit(freedom, 1 - KEPT_AT[later] * level)) >= POWER:
            return JUDGED_AT[later]
    return None
