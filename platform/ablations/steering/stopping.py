"""When a run may end before its budget: probabilities from the posterior draws of its fit, and the rules on them.

Pure functions; what they decide is carried out by `steering` and kept by `stops`. A rule that ends runs by their own
readings ends unlucky ones more often, so a stopped run is shown as stopped, with the interval of A that it had, and
never as one that was trained to the end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ablations.fit.result import Fit
from ablations.home.stops import Rule
from ablations.study.sweep import Stop
from ablations.verdict.run_to_run import PRIOR_SD

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


def dominated_probability(fit: Fit, reference_fits: Sequence[Fit], *, budget: float) -> float:
    """P(the run's pass rate at the budget lies below the reference's, averaged over its seeds)."""
    run, *reference = (one.predict_draws(np.array([budget]))[:, 0] for one in (fit, *reference_fits))
    return probability_below([run], reference)


def ceiling_below_probability(fits: Sequence[Fit], reference_fits: Sequence[Fit]) -> float:
    """P(A of a variant lies below A of the reference), each averaged over its seeds."""
    return probability_below([fit.draws.A for fit in fits], [fit.draws.A for fit in reference_fits])


def probability_below(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """P(mean of a - mean of b + e < 0), each array the draws of one run, e ~ N(0, s^2 (1 / len(a) + 1 / len(b))).

    The draws of different runs are independent, so they are paired at random (with a seed of its own, whatever order
    they come in); over e the probability is averaged exactly: mean of Phi(-difference / sd of e).
    """
    rng = np.random.default_rng(0)
    mean_a, mean_b = (np.mean([rng.choice(draws, NUM_PAIRS) for draws in side], axis=0) for side in (a, b))
    return float(np.mean(ndtr((mean_b - mean_a) / (PRIOR_SD * math.sqrt(1 / len(a) + 1 / len(b))))))


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
) -> StopReason | None:
    """What the rules say of a run after an evaluation, or None.

    `fits` are those after its last evaluations, the newest last, and `compute_now` the compute of each; empty while
    there are too few readings. `reference_fits` is None for the reference itself, which is only ever flagged. A fit
    through the part before a collapse predicts nothing: such a run is not judged by its predictions.
    """
    is_reference = reference_fits is None
    ends_run = stop.collapse == "stop" and not is_reference
    if fits and fits[-1].verdict == "collapsed":
        return StopReason(rule="collapse", value=1.0, ends_run=ends_run)
    if truncation is not None and truncation > stop.truncation_above:
        reason = StopReason(rule="truncation", value=truncation, ends_run=ends_run)
        if ends_run or is_reference:
            return reason
        return _ended_by_prediction(stop, fits, compute_now, budget, reference_fits) or reason
    return None if is_reference else _ended_by_prediction(stop, fits, compute_now, budget, reference_fits)


def _ended_by_prediction(
    stop: Stop, fits: Sequence[Fit], compute_now: Sequence[float], budget: float, reference_fits: Sequence[Fit]
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
        below = dominated_probability(fits[-1], reference_fits, budget=budget)
        if below > stop.dominated:
            return StopReason(rule="dominated", value=below, ends_run=True)
    return None
