"""When a run may end before its budget: probabilities from the posterior draws of its fit, and the rules on them.

Pure functions; `steering` carries out what they decide, and `ablations.home.stops` keeps it. A rule that ends runs by
their own readings ends unlucky ones more often, so a stopped run is shown as stopped, with the interval of A that it
had, and never as one that was trained to the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit
from ablations.home.stops import Rule
from ablations.study.sweep import Stop

TRUNCATION_STEPS = 20
"""Training steps over which the share of truncated answers is averaged."""
NUM_PAIRS = 20_000
"""Pairs of draws behind a probability: its Monte Carlo sd is at most 0.5 / sqrt(20000) = 0.0035."""


@dataclass(frozen=True, kw_only=True)
class StopReason:
    """A rule that applies to a run: `StopReason(rule="gain", value=0.93, ends_run=True)`."""

    rule: Rule
    value: float
    """The probability, or the share of truncated answers; 1 for a collapse."""
    ends_run: bool
    """Else the run is only flagged."""


def gain_probability(fit: Fit, *, compute_now: float, budget: float, gain_below: float) -> float:
    """P(R(budget) - R(compute_now) < gain_below): share of the posterior's curves that rise by less than that."""
    now, end = fit.predict_draws(np.array([compute_now, budget])).T
    return float(np.mean(end - now < gain_below))


def dominated_probability(fit: Fit, reference_fits: Sequence[Fit], *, budget: float, spread: RunToRun) -> float:
    """P(the run's pass rate at the budget lies below the reference's, averaged over its seeds), for recipes."""
    run, *reference = (one.predict_draws(np.array([budget]))[:, 0] for one in (fit, *reference_fits))
    return probability_below(run, reference, spread.differences(starts_of([fit]), starts_of(reference_fits), NUM_PAIRS))


def probability_below(a: np.ndarray, b: Sequence[np.ndarray], offsets: np.ndarray) -> float:
    """P(a - mean of b + e < 0): `a` and each of `b` are the draws of one run, `offsets` those of e.

    The draws of different runs are independent, so they are paired at random, whatever order they come in, with a seed
    of its own.
    """
    rng = np.random.default_rng(0)
    drawn, *others = (rng.choice(draws, offsets.size) for draws in (a, *b))
    return float(np.mean(drawn - np.mean(others, axis=0) + offsets < 0))


def twice_running(probabilities: Sequence[float], threshold: float) -> bool:
    """Whether the last two of a run's probabilities, one an evaluation, both exceed the threshold."""
    return len(probabilities) >= 2 and min(probabilities[-2:]) > threshold


def recent_truncation(truncated: Sequence[float]) -> float | None:
    """Mean share of truncated answers over the last 20 training steps; None while there are fewer."""
    return None if len(truncated) < TRUNCATION_STEPS else float(np.mean(truncated[-TRUNCATION_STEPS:]))


def stop_reason(
    stop: Stop,
    *,
    fits: Sequence[Fit],
    compute_now: Sequence[float],
    budget: float,
    truncation: float | None,
    reference_fits: Sequence[Fit] | None,
    spread: RunToRun,
) -> StopReason | None:
    """What the rules say of a run after an evaluation, or None.

    `fits` are those after its last evaluations, the newest last, and `compute_now` the compute of each; empty while
    there are too few readings. `reference_fits` is None for the reference itself, which is only ever flagged. `spread`
    is how far runs of one recipe lie apart. A fit through the part before a collapse predicts nothing: such a run is
    not judged by its predictions.
    """
    is_reference = reference_fits is None
    ends_run = stop.collapse == "stop" and not is_reference
    if fits and fits[-1].verdict == "collapsed":
        return StopReason(rule="collapse", value=1.0, ends_run=ends_run)
    if truncation is not None and truncation > stop.truncation_above:
        reason = StopReason(rule="truncation", value=truncation, ends_run=ends_run)
        if ends_run or is_reference:
            return reason
        return _ended_by_prediction(stop, fits, compute_now, budget, reference_fits, spread) or reason
    return None if is_reference else _ended_by_prediction(stop, fits, compute_now, budget, reference_fits, spread)


def _ended_by_prediction(
    stop: Stop,
    fits: Sequence[Fit],
    compute_now: Sequence[float],
    budget: float,
    reference_fits: Sequence[Fit],
    spread: RunToRun,
) -> StopReason | None:
    if stop.gain_below is not None:
        gains = [
            gain_probability(fit, compute_now=now, budget=budget, gain_below=stop.gain_below)
            for fit, now in zip(fits, compute_now, strict=True)
            if fit.verdict != "collapsed"
        ]
        if twice_running(gains, stop.probability):
            return StopReason(rule="gain", value=gains[-1], ends_run=True)
    if stop.dominated is not None and fits and reference_fits:
        below = dominated_probability(fits[-1], reference_fits, budget=budget, spread=spread)
        if below > stop.dominated:
            return StopReason(rule="dominated", value=below, ends_run=True)
    return None
