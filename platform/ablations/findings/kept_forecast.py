"""Forecasts saved beside the sweep, so that each is simulated only once.

A forecast is saved in the sweep's folder `forecasts/` (`ablations.readings.kept`), in a file named by everything it
depends on: the fits and the readings behind them, the run-to-run spread, the question, and the code. Curves of another
trainer have no sweep folder, so their forecasts are made each time.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ablations.answers.forecasts import Chance, Crossing, Prediction, estimated, joint_draws
from ablations.answers.interval import Interval
from ablations.files.trees import tree_bytes
from ablations.findings.results import Results
from ablations.findings.sweep_forecast import (
    Outlook,
    SweepForecast,
    VariantForecast,
    budgets_of,
    forecast_groups,
    forecast_sweep,
    spread_of,
)
from ablations.readings.kept import Made, code_in, kept_tree
from ablations.readings.run_reading import NAMED, code_of_readings
from ablations.terminal.progress_bar import Done

MOST_FORECASTS = 48
"""Limit on kept files of one sweep, the newest ones: forecasts differ by budget, target, baseline and variants."""
DECIDING_FORECASTS = ("sweep_forecast.py", "kept_forecast.py")
"""Source files of this room that determine a forecast, besides those of a reading."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ForecastLine:
    """The estimated curve of a variant: `ForecastLine(variant="loo-loss", end=2000.0, compute=..., rate=...)`."""

    variant: str
    end: float
    """The largest fitted compute; beyond it the line is extrapolated."""
    compute: np.ndarray
    rate: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ForecastBand:
    """The 95 % interval of a variant's curve at each compute."""

    compute: np.ndarray
    low: np.ndarray
    high: np.ndarray


FORECAST_CLASSES = (
    *(SweepForecast, VariantForecast, Outlook, Prediction, Chance, Interval, Crossing),
    *(ForecastLine, ForecastBand),
)


def kept_forecast(
    results: Results,
    *,
    budgets_gpu_hours: Sequence[float] = (),
    score: float | None = None,
    done: Done | None = None,
) -> SweepForecast:
    """The saved forecast of `forecast_sweep` with these arguments, or else a new one, which is then saved.

    `unkept` of the result says why a new one could not be saved.
    """
    budgets = budgets_of(results, budgets_gpu_hours)

    def make() -> SweepForecast:
        return forecast_sweep(results, budgets_gpu_hours=budgets, score=score, done=done)

    found, unkept = _kept(results, ("sweep", budgets, score), make, SweepForecast)
    return replace(found, unkept=unkept)


def kept_lines(results: Results, grids: Callable[[float], np.ndarray], key: Any) -> tuple[ForecastLine, ...]:
    """The line of every variant with a forecast, in the plan's order; saved like a forecast.

    `grids` gives the compute of a line, shape (num_points,), for the end of its fitted range, and `key` everything that
    determines `grids`.
    """

    def make() -> tuple[ForecastLine, ...]:
        lines = []
        for name, fits in forecast_groups(results).items():
            end = max(fit.window[1] for fit in fits)
            compute = grids(end)
            lines.append(ForecastLine(variant=name, end=end, compute=compute, rate=estimated(fits, compute)))
        return tuple(lines)

    return _kept(results, ("lines", key), make, tuple)[0]


def kept_band(results: Results, variant: str, compute: np.ndarray) -> ForecastBand:
    """The band of one variant, including the run-to-run spread of its recipe; saved like a forecast.

    `compute` and the ends of the band have shape (num_points,).
    """

    def make() -> ForecastBand:
        draws = joint_draws(forecast_groups(results)[variant], compute, spread=spread_of(results))
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        return ForecastBand(compute=compute, low=low, high=high)

    return _kept(results, ("band", variant, compute), make, ForecastBand)[0]


def _kept(results: Results, asked: tuple[Any, ...], make: Callable[[], Made], kind: type[Made]) -> tuple[Made, str]:
    """The saved answer to the question, or else the result of `make`, which is then saved; and the reason why it could
    not be saved."""
    if results.sweep is None:
        return make(), ""
    path = results.sweep.folder / "forecasts" / f"{_key(results, asked)}.npz"
    return kept_tree(path, make, kind, classes=FORECAST_CLASSES, most=MOST_FORECASTS)


def _key(results: Results, asked: tuple[Any, ...]) -> str:
    """SHA-256, shortened, of everything that determines a forecast."""
    plan, comparison = results.plan, results.comparison
    content = (
        _code(),
        asked,
        (plan.sweep, plan.reference, tuple(results.reasons)),
        tuple((variant.name, tuple((run.seed, run.fit) for run in variant.runs)) for variant in results.variants),
        None if comparison is None else (dict(comparison.spreads), comparison.others.says),
    )
    return hashlib.sha256(tree_bytes(content, named=NAMED)).hexdigest()[:16]


@cache
def _code() -> str:
    return code_in(map(Path(__file__).with_name, DECIDING_FORECASTS), code_of_readings())
