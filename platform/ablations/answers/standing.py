"""Where a run stands, and what it does from there: eq. 1's rise, less what runs lose, with room for departures.

f is the median of eq. 1's draws, C_n the last fitted compute, of n readings, and L = ln(C / C_n):

    now       = f(C_n) + mean of the last k residuals, k = n / 12, at least 3 and at most 8
    rise      = f(C) - f(C_n), half the run's own and half the mean of its variant's runs
    drawdown  = highest running mean of k readings minus the last one, mean over the variant, less noise / sqrt(k)
    centre    = now + 0.7 rise - 2 drawdown
    spread^2  = (0.45 rise)^2 + noise^2 (1 / k + 1.4^2 L) + (sd of eq. 1's draws of the rise)^2

No law holds far beyond its readings: runs fall, level off early and wander, which the terms beside eq. 1's allow for.
The numbers were chosen on 2026-11-28 (`benchmarks/forecast_shelf.py`); what a home's own finished runs say is added by
`ablations.answers.calibration`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ablations.fit.ends import TAILS
from ablations.fit.law_fit import LawFit

RISE, DRAWDOWN, RISE_SD, WANDER = 0.7, 2.0, 0.45, 1.4
LEAST_NOISE = 1e-3
ENOUGH_DRAWS = 500
"""Number of draws that serve for a median and an sd."""
NORMAL_WIDTH = 3.919928
"""Width of the 95 % interval of a standard normal distribution."""
NUM_CARRIED = 3
"""Number of readings whose mean the obvious forecast carries on."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A run at its last fitted reading: Standing(now=0.83, carried=0.831, drawdown=0.01, noise=0.017, k=6)."""

    now: float
    carried: float
    """Mean of the last three readings."""
    drawdown: float
    noise: float
    """Standard deviation of a reading about eq. 1, over the last half of the readings."""
    k: int


@lru_cache(maxsize=1024)
def standing_of(fit: LawFit) -> Standing:
    """The standing of a fitted run."""
    score = fit.readings.score
    residual = score - median_law(fit, fit.readings.compute)
    k = min(int(np.clip(round(score.size / 12), 3, 8)), score.size)
    late = residual[residual.size // 2 :] if residual.size >= 12 else residual
    running = np.convolve(score, np.full(k, 1 / k), "valid")
    return Standing(
        now=float(score[-1] - residual[-1] + residual[-k:].mean()),
        carried=float(score[-NUM_CARRIED:].mean()),
        drawdown=float(running.max() - running[-1]),
        noise=max(float(np.std(late, ddof=1)), LEAST_NOISE),
        k=k,
    )


def median_law(fit: LawFit, compute: np.ndarray) -> np.ndarray:
    """f at each compute."""
    return np.median(_some_draws(fit, compute), axis=0)


def _some_draws(fit: LawFit, compute: np.ndarray) -> np.ndarray:
    return fit.predict_draws(compute, every=max(fit.draws.A.size // ENOUGH_DRAWS, 1))


class Ahead(NamedTuple):
    """A run at each compute beyond its last reading; all of shape (num_compute,)."""

    centre: np.ndarray
    spread: np.ndarray
    rise: np.ndarray
    """The rise of eq. 1, of which the centre holds seven tenths."""


def ahead_of(fit: LawFit, variant: Sequence[LawFit], compute: np.ndarray, *, num_readings: int = 0) -> Ahead:
    """Centre, spread and rise of a run at each compute beyond its last reading.

    `variant` are the fits of all runs of its variant, itself among them. With `num_readings` they are those of the mean
    of so many readings, whose noise counts too.
    """
    run, runs = standing_of(fit), [standing_of(one) for one in variant]
    own, width = _rise(fit, compute.tobytes())
    rise = (own + np.mean([_rise(one, compute.tobytes())[0] for one in variant], axis=0)) / 2
    noise = float(np.mean([one.noise for one in runs]))
    drawdown = max(float(np.mean([one.drawdown - one.noise / np.sqrt(one.k) for one in runs])), 0.0)
    distance = distance_from(fit, compute)
    of_readings = 1 / num_readings if num_readings else 0.0
    variance = noise**2 * (1 / run.k + of_readings + WANDER**2 * distance)
    variance += (RISE_SD * rise) ** 2 + (width / NORMAL_WIDTH) ** 2
    return Ahead(run.now + RISE * rise - DRAWDOWN * drawdown, np.sqrt(variance), rise)


@lru_cache(maxsize=64)  # the runs of a variant ask each other for the same
def _rise(fit: LawFit, compute: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The rise of f from the last reading to each compute, and the width of the 95 % interval of the draws' rises."""
    drawn = _some_draws(fit, np.append(fit.window[1], np.frombuffer(compute)))
    centre = np.median(drawn, axis=0)
    low, high = np.quantile(drawn[:, 1:] - drawn[:, :1], TAILS, axis=0)
    return centre[1:] - centre[0], high - low


def distance_from(fit: LawFit, compute: np.ndarray) -> np.ndarray:
    """L = ln(C / C_n), 0 up to the last fitted reading."""
    with np.errstate(divide="ignore"):
        return np.log(compute / fit.window[1]).clip(0)
