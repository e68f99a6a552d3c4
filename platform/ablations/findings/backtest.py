"""Backtest of the forecasts: every finished run, fitted on its first part, against the measurements at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ablations.answers.calibration import Calibration
from ablations.answers.forecasts import mean_draws
from ablations.answers.past_forecasts import FRACTIONS, NUM_LAST, Cut, cuts_of
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings
from ablations.terminal.progress_bar import Done, counted_off
from ablations.text import counted


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
    """The obvious forecast: the last fitted readings carried on, with what finished runs teach."""
    carried_lo: float | None = None
    carried_hi: float | None = None
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
    interval_score: float | None = None
    """Mean of width + 40 x distance outside; less is better."""
    carried_mean_absolute_error: float | None = None
    """Mean absolute error of the last readings carried on."""
    carried_interval_score: float | None = None

    @property
    def skill(self) -> float | None:
        """1 - interval score / that of carrying on: above 0 the forecast is better than the obvious."""
        if self.interval_score is None or not self.carried_interval_score:
            return None
        return 1 - self.interval_score / self.carried_interval_score

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, including `skill`."""
        return asdict(self) | {"skill": self.skill}


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """Every check, run by run, and the score of each fraction."""

    checks: tuple[Check, ...]
    scores: tuple[Score, ...]
    is_carried: bool = False
    """True if the sweep's forecasts carry the last readings on, because that foretold its finished runs better."""

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
            "scores": [score.to_json() for score in self.scores],
            "is_carried": self.is_carried,
        }


def backtest(
    curves: Mapping[str, Sequence[Curve]],
    settings: FitSettings,
    *,
    fractions: Sequence[float] = FRACTIONS,
    done: Done | None = None,
) -> Backtest:
    """Forecast the last readings of every finished run, by variant, from the first part of its compute, as if all other
    runs had finished.
    """
    cuts: list[Cut] = []
    failed: list[Check] = []
    wanted = [(variant, fraction) for variant in curves for fraction in fractions]
    for variant, fraction in counted_off(wanted, done):
        found, reasons = cuts_of(variant, curves[variant], fraction, settings)
        cuts += found
        failed += [Check(curve=name, fraction=fraction, reason=why) for name, why in reasons.items()]
    calibration = Calibration(errors=tuple(cut.error for cut in cuts))
    checks = [*(check_cut(cut, calibration.without(cut.curve.name)) for cut in cuts), *failed]
    order = {curve.name: place for place, curve in enumerate(chain.from_iterable(curves.values()))}
    checks.sort(key=lambda one: (order[one.curve], one.fraction))
    scores = [score(fraction, [one for one in checks if one.fraction == fraction]) for fraction in fractions]
    return Backtest(checks=tuple(checks), scores=tuple(scores), is_carried=calibration.prefers_carried)


def check_cut(cut: Cut, calibration: Calibration) -> Check:
    """Forecast the last readings of a finished run from a part of it, and carry its last readings on beside it."""
    (predicted, lo, hi), (carried, carried_lo, carried_hi) = (
        _foretold(cut, replace(calibration, is_carried=is_carried)) for is_carried in (False, True)
    )
    return Check(
        curve=cut.curve.name,
        fraction=cut.fraction,
        fitted_to=cut.fit.window[1],
        compute=float(cut.compute.mean()),
        measured=cut.measured,
        predicted=predicted,
        lo=lo,
        hi=hi,
        carried=carried,
        carried_lo=carried_lo,
        carried_hi=carried_hi,
    )


def _foretold(cut: Cut, calibration: Calibration) -> tuple[float, float, float]:
    """The forecast of the mean of the last readings with its 95 % interval."""
    drawn = mean_draws((cut.fit,), cut.siblings, cut.compute, cut.variant, calibration, num_readings=NUM_LAST).clip(
        0, cut.fit.settings.highest
    )
    value, lo, hi = np.quantile(drawn.mean(axis=1), (0.5, 0.025, 0.975)).tolist()
    return value, lo, hi


def score(fraction: float, checks: Sequence[Check]) -> Score:
    """Bias, mean absolute error, coverage and interval score over the checks with a forecast."""
    made = [one for one in checks if one.predicted is not None]
    if not made:
        return Score(fraction=fraction, num_runs=0)
    measured, predicted, lo, hi, carried, carried_lo, carried_hi = (
        np.array([getattr(one, name) for one in made], dtype=float)
        for name in ("measured", "predicted", "lo", "hi", "carried", "carried_lo", "carried_hi")
    )
    return Score(
        fraction=fraction,
        num_runs=len(made),
        mean_error=float((predicted - measured).mean()),
        mean_absolute_error=float(np.abs(predicted - measured).mean()),
        coverage=float(np.mean([bool(one.is_held) for one in made])),
        interval_score=mean_interval_score(measured, lo, hi),
        carried_mean_absolute_error=float(np.abs(carried - measured).mean()),
        carried_interval_score=mean_interval_score(measured, carried_lo, carried_hi),
    )


def mean_interval_score(measured: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> float:
    """Mean of width + (2 / .05) x distance outside, the score of 95 % intervals, of which less is better (Gneiting and
    Raftery 2007, equation 43).
    """
    outside = np.maximum(np.maximum(lo - measured, measured - hi), 0)
    return float(np.mean(hi - lo + 2 / 0.05 * outside))
