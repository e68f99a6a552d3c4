"""Rules for ending a run before its budget, on probabilities from draws of its forecast (`answers.forecasts`).

Pure functions; `steering` carries out their decisions, and `ablations.home.stops` keeps them. A rule based on a run's
own readings ends unlucky runs more often. So a stopped run is shown as stopped, with its interval of A at that time,
and never as trained to the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.forecasts import VariantFits
from ablations.answers.run_to_run import RunToRun
from ablations.answers.standing import standing_of
from ablations.fit.result import Fit
from ablations.home.stops import Rule
from ablations.study.sweep import Stop

TRUNCATION_STEPS = 20
"""Number of training steps over which the share of truncated answers is averaged."""
NUM_PAIRS = 20_000
"""Number of pairs of draws behind a probability; its Monte Carlo sd is at most 0.5 / sqrt(20000) = 0.0035."""


@dataclass(frozen=True, kw_only=True)
class StopReason:
    """A rule that applies to a run: `StopReason(rule="gain", value=0.93, ends_run=True)`."""

    rule: Rule
    value: float
    """The probability, or the share of truncated answers; 1 for a collapse."""
    ends_run: bool
    """True if the run ends; False if it is only flagged."""


def gain_probability(fit: Fit, *, budget: float, gain_below: float) -> float:
    """P(R(budget) - now < gain_below): the share of draws that gain less than this from the current level of the
    run."""
    end = VariantFits(variant="", fits=(fit,)).draws(budget)[:, 0]
    return float(np.mean(end - standing_of(fit).now < gain_below))


def dominated_probability(fit: Fit, reference_fits: Sequence[Fit], *, budget: float, spread: RunToRun) -> float:
    """P(the run's pass rate at the budget lies below the reference's mean over its seeds), for their recipes."""
    run = VariantFits(variant="", fits=(fit,)).draws(budget)[:, 0]
    reference = VariantFits(variant="reference", fits=tuple(reference_fits)).draws(budget)[:, 0]
    return probability_below(run, reference, spread.differences(starts_of([fit]), starts_of(reference_fits), NUM_PAIRS))


def probability_below(a: np.ndarray, b: np.ndarray, offsets: np.ndarray) -> float:
    """P(a - b + e < 0), with `a` and `b` the draws of one variant each and `offsets` the draws of e.

    Draws of different runs are independent, so they are paired at random, in an order fixed by a seed.
    """
    rng = np.random.default_rng(0)
    drawn, other = (rng.choice(draws, offsets.size) for draws in (a, b))
    return float(np.mean(drawn - other + offsets < 0))


def recent_truncation(truncated: Sequence[float]) -> float | None:
    """Mean share of truncated answers over the last 20 training steps; None while there are fewer."""
    return None if len(truncated) < TRUNCATION_STEPS else float(np.mean(truncated[-TRUNCATION_STEPS:]))


def stop_reason(
    stop: Stop,
    *,
    fits: Sequence[Fit],
    budget: float,
    truncation: float | None,
    reference_fits: Sequence[Fit] | None,
    spread: RunToRun,
) -> StopReason | None:
    """The reason to stop or flag a run after an evaluation, or None.

    `fits` are the fits after its last evaluations, the newest last; there are none while there are too few readings.
    `reference_fits` is None for the reference itself, which is only ever
    flagged. `spread` is the run-to-run spread. A fit to the part before a collapse predicts nothing, so such a run is
    not judged by its predictions.
    """
    ends_run = stop.collapse == "stop" and reference_fits is not None
    if fits and fits[-1].verdict == "collapsed":
        return StopReason(rule="collapse", value=1.0, ends_run=ends_run)
    flagged = None
    if truncation is not None and truncation > stop.truncation_above:
        flagged = StopReason(rule="truncation", value=truncation, ends_run=ends_run)
    if reference_fits is None or (ends_run and flagged):
        return flagged
    if stop.gain_below is not None:
        gains = [
            gain_probability(fit, budget=budget, gain_below=stop.gain_below)
            for fit in fits
            if fit.verdict != "collapsed"
        ]
        if len(gains) >= 2 and min(gains[-2:]) > stop.probability:  # one evaluation alone may be luck
            return StopReason(rule="gain", value=gains[-1], ends_run=True)
    if stop.dominated is not None and fits and reference_fits:
        below = dominated_probability(fits[-1], reference_fits, budget=budget, spread=spread)
        if below > stop.dominated:
            return StopReason(rule="dominated", value=below, ends_run=True)
    return flagged
