"""The forecast of a sweep: every variant at every requested budget, and against the reference."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ablations.answers.crossings import Crossing, crossing
from ablations.answers.forecasts import (
    Chance,
    Prediction,
    VariantFits,
    compute_to_reach,
    cost_of_a_point,
    difference_at,
    estimated,
    leaderboard,
    no_forecast,
    predict,
)
from ablations.answers.interval import Interval
from ablations.answers.pass_rate_at import pass_rate_at
from ablations.answers.questions import LEVEL
from ablations.answers.run_to_run import RunToRun
from ablations.errors import AblationsError
from ablations.findings.backtest import Backtest, backtest
from ablations.findings.finished_runs import calibration_of, finished_curves
from ablations.findings.results import Results
from ablations.terminal.progress_bar import Done, counted_off
from ablations.text import compute_text, counted

DEFAULT_BUDGETS = (1.0, 2.0, 10.0)
"""Multiples of the plan's budget."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A variant at one budget.

    Outlook(prediction=Prediction(compute=3000.0, estimate=0.79, ...), chance=Chance(variant="loo-loss", wins=0.2, ...),
            difference=Interval(estimate=-0.01, lo=-0.03, hi=0.02), cost_of_a_point=Interval(estimate=410.0, ...))
    """

    prediction: Prediction
    chance: Chance
    difference: Interval | None
    """Pass rate minus the reference's; None for the reference, and if the reference has no forecast."""
    cost_of_a_point: Interval | None
    """Compute for another 0.01 of pass rate; None if the curve may be flat."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, with the prediction's numbers at the top level."""
        return asdict(self.prediction) | {
            "wins": self.chance.wins,
            "rule": self.chance.rule,
            "difference": self.difference and asdict(self.difference),
            "cost_of_a_point": self.cost_of_a_point and asdict(self.cost_of_a_point),
        }


@dataclass(frozen=True, kw_only=True)
class VariantForecast:
    """A variant at every budget."""

    variant: str
    num_seeds: int
    outlooks: tuple[Outlook, ...]
    reach: Interval | None
    """Compute to the requested pass rate; None if none is requested or half of the curves never reach it."""
    crossing: Crossing | None
    """The crossing with the reference; None for the reference, and if the reference has no forecast."""

    def to_json(self) -> dict[str, Any]:
        return {
            "variant": self.variant,
            "num_seeds": self.num_seeds,
            "budgets": [outlook.to_json() for outlook in self.outlooks],
            "compute_to_reach": self.reach and asdict(self.reach),
            "crossing": self.crossing and asdict(self.crossing),
        }


@dataclass(frozen=True, kw_only=True)
class SweepForecast:
    """Every variant with a forecast, in the plan's order, and the reasons for those without."""

    sweep: str
    reference: str
    budgets_gpu_hours: tuple[float, ...]
    score: float | None
    """The pass rate whose compute was requested."""
    variants: tuple[VariantForecast, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    """Notes of the import, for runs of other trainers, and remarks on curves that may not be what they seem."""
    num_finished: int
    """Number of finished runs whose forecasts from their first parts calibrate these."""
    is_carried: bool
    """True if the last readings are carried on, because that foretold the finished runs better."""

    def __repr__(self) -> str:
        budgets = ", ".join(map(compute_text, self.budgets_gpu_hours))
        return f"<Forecast of {self.sweep!r}: {counted(len(self.variants), 'variant')} at {budgets}>"

    @property
    def is_empty(self) -> bool:
        """True if no variant has a forecast."""
        return not self.variants

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"sweep": "loo", "reference": "scalerl", "variants": [...], "reasons": [...], ...}."""
        return {
            "sweep": self.sweep,
            "reference": self.reference,
            "budgets_gpu_hours": list(self.budgets_gpu_hours),
            "score": self.score,
            "finished_runs": self.num_finished,
            "is_carried": self.is_carried,
            "variants": [variant.to_json() for variant in self.variants],
            "reasons": list(self.reasons),
            "notes": list(self.notes),
        }


def forecast_sweep(
    results: Results,
    *,
    budgets_gpu_hours: Sequence[float] = (),
    score: float | None = None,
    done: Done | None = None,
) -> SweepForecast:
    """Forecast all variants at these computes, by default at 1, 2 and 10 times the plan's budget.

    `done` receives the number of variants forecast and the total.

    AblationsError if `score` is not in (0, 1].
    """
    plan = results.plan
    budgets = budgets_of(results, budgets_gpu_hours)
    if score is not None and not 0 < score <= 1:
        raise AblationsError(f"score is {score:g}; a pass rate to reach lies in (0, 1]")
    prospects, spread = prospects_of(results), spread_of(results)
    chances = [
        {one.variant: one for one in leaderboard([*prospects.values()], budget, spread)} if prospects else {}
        for budget in budgets
    ]
    baseline = prospects.get(plan.reference)
    others = results.comparison.others.of(LEVEL.name) if results.comparison else ()
    groups = [one.fits for one in prospects.values()]
    spreads = [pass_rate_at(budget).spread_of(groups, baseline.fits if baseline else (), others) for budget in budgets]
    without = [(run, no_forecast(run.fit)) for run in results.runs if run.fit is not None]

    def of_variant(prospect: VariantFits) -> VariantForecast:
        against = baseline if prospect is not baseline else None
        return VariantForecast(
            variant=prospect.variant,
            num_seeds=len(prospect.fits),
            outlooks=tuple(
                Outlook(
                    prediction=predict(prospect, budget, spread),
                    chance=by_name[prospect.variant],
                    difference=difference_at(prospect, against, budget, at_budget) if against else None,
                    cost_of_a_point=cost_of_a_point(prospect, budget),
                )
                for budget, by_name, at_budget in zip(budgets, chances, spreads, strict=True)
            ),
            reach=None if score is None else compute_to_reach(prospect, score, spread),
            crossing=crossing(prospect, against, spread) if against else None,
        )

    calibration = calibration_of(results)
    return SweepForecast(
        sweep=plan.sweep,
        reference=plan.reference,
        budgets_gpu_hours=budgets,
        score=score,
        variants=tuple(of_variant(one) for one in counted_off([*prospects.values()], done)),
        reasons=(
            *results.reasons,
            *(f"{run.name}: {why}" for run, why in without if why),
        ),
        notes=results.notes_on_curves,
        num_finished=calibration.num_runs,
        is_carried=calibration.is_carried,
    )


def budgets_of(results: Results, budgets_gpu_hours: Sequence[float]) -> tuple[float, ...]:
    """The given computes, by default those of DEFAULT_BUDGETS; AblationsError if one is no compute to forecast for."""
    for compute in budgets_gpu_hours:
        if not (np.isfinite(compute) and compute > 0):
            raise AblationsError(f"compute is {compute:g}; a forecast needs a finite number greater than 0")
    return tuple(budgets_gpu_hours) or tuple(times * results.plan.budget_gpu_hours for times in DEFAULT_BUDGETS)


@lru_cache(maxsize=4)
def prospects_of(results: Results) -> dict[str, VariantFits]:
    """What is forecast of each variant: its runs with a fit that have not collapsed."""
    calibration = calibration_of(results)
    fits = {one.name: tuple(fit for fit in one.fits if not no_forecast(fit)) for one in results.variants}
    return {name: VariantFits(variant=name, fits=some, calibration=calibration) for name, some in fits.items() if some}


def spread_of(results: Results) -> RunToRun:
    """The run-to-run spread of levels, as in the sweep's verdicts."""
    if results.comparison is not None:
        return results.comparison.spreads[LEVEL.name]
    return LEVEL.spread_of([variant.fits for variant in results.variants], [])


def backtest_sweep(results: Results, *, done: Done | None = None) -> Backtest:
    """Backtest the forecasts of every finished run; `done` receives the number of parts fitted and the total.

    AblationsError if no run has finished.
    """
    plan, curves = results.plan, finished_curves(results)
    if not curves:
        raise AblationsError(
            f"sweep {plan.sweep!r}: none of {len(results.runs)} runs has reached its budget of "
            f"{plan.hours_text(plan.budget_gpu_hours)}; a backtest needs a run that has"
        )
    return backtest(curves, plan.fit_settings, done=done)


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


def forecast_lines(results: Results, grids: Callable[[float], np.ndarray]) -> list[ForecastLine]:
    """The line of every variant with a forecast, in the plan's order.

    `grids` gives the compute of a line, shape (num_points,), for the end of its fitted range.
    """
    lines = []
    for name, prospect in prospects_of(results).items():
        compute = grids(prospect.last)
        rate = estimated(prospect, compute)
        lines.append(ForecastLine(variant=name, end=prospect.last, compute=compute, rate=rate))
    return lines


def forecast_band(results: Results, variant: str, compute: np.ndarray) -> ForecastBand:
    """The band of one variant, including the run-to-run spread of its recipe.

    `compute` and the ends of the band have shape (num_points,).
    """
    draws = prospects_of(results)[variant].recipe_draws(compute, spread_of(results))
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return ForecastBand(compute=compute, low=low, high=high)
