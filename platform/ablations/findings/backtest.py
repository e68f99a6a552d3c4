"""Backtest of the forecasts: every finished run, fitted on its first part, against the measurements at its end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

from ablations.answers.forecasts import is_by_eq1, joint_draws, no_forecast
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit
from ablations.terminal.progress_bar import Done, counted_off
from ablations.text import compute_text, counted

FRACTIONS = (0.3, 0.5, 0.7)
"""Fitted shares of a run's compute; the paper forecasts from the first half (ScaleRL §2.1)."""
NUM_LAST = 3
"""Number of readings at the end of a run whose mean is predicted."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One run forecast from a part of itself, or the reason why there is no forecast.

    Check(curve="loo-loss-s0", fraction=0.5, fitted_to=741.0, compute=1453.0, measured=0.771, predicted=0.776,
          lo=0.752, hi=0.801, carried=0.744, reason="")
    """

    curve: str
    fraction: float
    fitted_to: float | None = None
    """Compute of the last fitted reading."""
    compute: float | None = None
    """Mean compute of the last readings."""
    measured: float | None = None
    """Mean pass rate of the last readings."""
    predicted: float | None = None
    """The forecast of that mean."""
    lo: float | None = None
    """Lower end of the 95 % interval for that mean: of the curve, with the noise of the readings."""
    hi: float | None = None
    carried: float | None = None
    """Mean of the last fitted readings: the naive forecast of no further gain."""
    reason: str = ""

    @property
    def error(self) -> float | None:
        """Prediction minus measurement."""
        return None if self.predicted is None or self.measured is None else self.predicted - self.measured

    @property
    def is_held(self) -> bool | None:
        """True if the interval contains the measurement."""
        if self.lo is None or self.hi is None or self.measured is None:
            return None
        return self.lo <= self.measured <= self.hi

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, including `error` and `is_held`."""
        return asdict(self) | {"error": self.error, "is_held": self.is_held}


@dataclass(frozen=True, kw_only=True)
class Score:
    """The accuracy of the forecasts from one fraction over all runs that have one.

    Score(fraction=0.5, num_runs=9, mean_error=0.004, mean_absolute_error=0.009, coverage=0.89,
          carried_mean_absolute_error=0.031)
    """

    fraction: float
    num_runs: int
    mean_error: float | None = None
    """The bias; above 0 the forecasts were too high."""
    mean_absolute_error: float | None = None
    coverage: float | None = None
    """Share of the 95 % intervals that contain the measurement."""
    carried_mean_absolute_error: float | None = None
    """Mean absolute error of the naive forecast of no further gain."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """Every check, run by run, and the score of each fraction."""

    checks: tuple[Check, ...]
    scores: tuple[Score, ...]

    def __repr__(self) -> str:
        return f"<Backtest: {counted(len(self.checks), 'forecast')} of the end of a run>"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Messages about checks without a forecast."""
        return tuple(f"first {one.fraction:.0%}: {one.reason}" for one in self.checks if one.reason)

    @property
    def is_empty(self) -> bool:
        """True if no check has a forecast."""
        return len(self.reasons) == len(self.checks)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"checks": [{"curve": "loo-loss-s0", ...}], "scores": [{"fraction": 0.3, ...}]}."""
        return {
            "checks": [check.to_json() for check in self.checks],
            "scores": [asdict(score) for score in self.scores],
        }


def backtest(
    curves: Sequence[Curve],
    *,
    fit_from: float = 0.0,
    fractions: Sequence[float] = FRACTIONS,
    done: Done | None = None,
) -> Backtest:
    """Forecast the last readings of every curve from the readings in (fit_from, fraction of its compute]."""
    wanted = [(curve, fraction) for curve in curves for fraction in fractions]
    checks = [check_curve(curve, fraction, fit_from=fit_from) for curve, fraction in counted_off(wanted, done)]
    scores = [score(fraction, [one for one in checks if one.fraction == fraction]) for fraction in fractions]
    return Backtest(checks=tuple(checks), scores=tuple(scores))


def check_curve(curve: Curve, fraction: float, *, fit_from: float = 0.0) -> Check:
    """Forecast a curve's last readings from its first part."""
    fit_to = fraction * float(curve.compute[-1])
    if (found := int(np.sum(curve.compute > fit_to))) < NUM_LAST:
        needed = f"{counted(found, 'evaluation')} beyond {compute_text(fit_to)}; a check needs {NUM_LAST}"
        return Check(curve=curve.name, fraction=fraction, reason=f"curve {curve.name!r}: {needed}")
    try:
        fit = fit_curve(curve, fit_from=fit_from, fit_to=fit_to)
    except AblationsError as error:
        return Check(curve=curve.name, fraction=fraction, reason=str(error))
    if why := no_forecast(fit):
        return Check(curve=curve.name, fraction=fraction, reason=f"curve {curve.name!r}: {why}")
    compute = curve.compute[-NUM_LAST:]
    predicted = joint_draws([fit], compute, eq1_alone=is_by_eq1([fit])).mean(axis=1)
    lo, hi = (float(q) for q in np.quantile(mean_reading_draws(fit, compute), (0.025, 0.975)))
    return Check(
        curve=curve.name,
        fraction=fraction,
        fitted_to=fit.window[1],
        compute=float(compute.mean()),
        measured=float(curve.score[-NUM_LAST:].mean()),
        predicted=float(np.median(predicted)),
        lo=lo,
        hi=hi,
        carried=float(fit.readings.score[-NUM_LAST:].mean()),
    )


def score(fraction: float, checks: Sequence[Check]) -> Score:
    """Bias, mean absolute error and coverage over the checks with a forecast."""
    made = [one for one in checks if one.error is not None]
    if not made:
        return Score(fraction=fraction, num_runs=0)
    measured, carried = (
        np.array([getattr(one, name) for one in made], dtype=float) for name in ("measured", "carried")
    )
    errors = np.array([one.error for one in made], dtype=float)
    return Score(
        fraction=fraction,
        num_runs=len(made),
        mean_error=float(errors.mean()),
        mean_absolute_error=float(np.abs(errors).mean()),
        coverage=float(np.mean([bool(one.is_held) for one in made])),
        carried_mean_absolute_error=float(np.abs(carried - measured).mean()),
    )


def mean_reading_draws(fit: Fit, compute: np.ndarray) -> np.ndarray:
    """Draws of the mean of future readings at these computes, with the uncertainty of the curve and the readings'
    noise.
    """
    drawn = joint_draws([fit], compute).mean(axis=1)
    rng = np.random.default_rng(crc32(fit.readings.score.tobytes()))
    noise = rng.standard_normal(drawn.size) * np.sqrt(mean_noise_variance(fit, compute.size))
    return (drawn + noise).clip(0, 1)


def mean_noise_variance(fit: Fit, num: int) -> float:
    """Variance of the noise of the mean of `num` consecutive readings, as estimated by the fit.

    sampling / n + run / n^2 sum_ij rho^|i - j|: sampling noise is independent between readings, run noise is AR(1) with
    rho = autocorrelation noise_sd^2 / run.
    """
    sampling = fit.readings.sampling_variance
    run = max(fit.noise_sd**2 - sampling, 1e-300)
    rho = min(fit.autocorrelation * fit.noise_sd**2 / run, 1.0)
    lags = np.abs(np.subtract.outer(np.arange(num), np.arange(num)))
    return sampling / num + run * float(np.mean(rho**lags))
