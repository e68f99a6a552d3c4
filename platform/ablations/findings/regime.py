"""How far the runs of a sweep are from the paper's regime, in numbers without a unit of the machine.

    passes        times that a training prompt is drawn             P S / N
    staleness     age of a trained token's weights                   mean over tokens, in optimiser steps
    log_ratio     |log pi_trainer - log pi_generator|                mean over tokens
    update        |w_{t+1} - w_t| / |w_t|                            of one optimiser step
    reach         C_end / C_mid                                      of eq. 1

A study of another regime may be right about it and say nothing about the paper's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ablations.diagnosis.history import History, LogRow, history_of_run
from ablations.findings.published_regime import LARGE_RUNS, PublishedNumber
from ablations.findings.results import Results
from ablations.readings.run_reading import recipe_and_seed
from scalerl.recipe import ResolvedRecipe

WITHIN_FACTOR = 2.0
"""A number within this factor of the published range counts as in the regime."""
SHARE_OF_STEPS = 0.05
"""Share of the steps whose mean is the value at the start, and at the end."""


@dataclass(frozen=True, kw_only=True)
class RegimeNumber:
    """One number beside the published one: `RegimeNumber(published=LARGE_RUNS[0], here=10.8)`."""

    published: PublishedNumber
    here: float | None
    """None if the runs do not tell it."""

    @property
    def is_within(self) -> bool | None:
        """True within WITHIN_FACTOR of the published range; None if it is not known here."""
        if self.here is None:
            return None
        return self.published.low / WITHIN_FACTOR <= self.here <= self.published.high * WITHIN_FACTOR

    def to_json(self) -> dict[str, Any]:
        given = self.published
        return {
            "name": given.name,
            "here": self.here,
            "low": given.low,
            "high": given.high,
            "of_paper": given.of_paper,
            "source": given.source,
            "within": self.is_within,
        }


def regime_of(results: Results) -> list[RegimeNumber]:
    """The numbers of the reference's runs, means over its seeds; empty if no log has a step."""
    reference = results.variant(results.plan.reference)
    runs = [measured_regime(log, recipe) for log, recipe in _logs(results)]
    if not runs:
        return []
    fits = [fit for fit in reference.fits if fit.has_midpoint]
    found: dict[str, float | None] = {name: _mean([run.get(name) for run in runs]) for name in REGIME_MEASURES}
    found["reach"] = _mean([fit.curve.compute[-1] / fit.C_mid for fit in fits])
    spread = results.comparison and results.comparison.spreads["level"]
    found["run_to_run_sd"] = spread.sd if spread and spread.is_known else None
    return [RegimeNumber(published=one, here=found.get(one.name)) for one in LARGE_RUNS]


def _logs(results: Results) -> list[tuple[History, ResolvedRecipe | None]]:
    """The logs of the reference's runs that have steps, each with its recipe if the built-in trainer ran it."""
    runs = [(run.name, results.sweep.run(run.id)) for run in results.variant(results.plan.reference).runs]
    found = [(history_of_run(folder, name), recipe_and_seed(folder)) for name, folder in runs]
    recipes = [(log, made[0] if made and isinstance(made[0], ResolvedRecipe) else None) for log, made in found]
    return [(log, recipe) for log, recipe in recipes if log.steps]


def measured_regime(log: History, recipe: ResolvedRecipe | None) -> dict[str, float | None]:
    """The numbers that the log of one run tells; some need its recipe, which is None for another trainer's run."""
    return {name: measure(log, recipe) for name, measure in REGIME_MEASURES.items()}


def num_train_prompts(recipe: ResolvedRecipe) -> int | None:
    """Training prompts of a recipe of generated tasks; None with a file, whose recipe does not say."""
    numbers = [getattr(task, "train_prompts", None) for task in recipe.tasks]
    return None if None in numbers else sum(filter(None, numbers))


def _passes(log: History, recipe: ResolvedRecipe | None) -> float | None:
    number = recipe and num_train_prompts(recipe)
    return len(log.steps) * recipe.batch.prompts / number if recipe and number else None


def _retired(log: History, recipe: ResolvedRecipe | None) -> float | None:
    number = recipe and num_train_prompts(recipe)
    return log.steps[-1].get("retired", 0) / number if number else None


def _over(column: str, part: Callable[[Sequence[LogRow]], Sequence[LogRow]] = lambda rows: rows) -> "MeasureOfLog":
    return lambda log, recipe: _mean([row.get(column) for row in part(log.steps)])


def _first(rows: Sequence[LogRow]) -> Sequence[LogRow]:
    return rows[: max(1, round(SHARE_OF_STEPS * len(rows)))]


def _last(rows: Sequence[LogRow]) -> Sequence[LogRow]:
    return rows[-max(1, round(SHARE_OF_STEPS * len(rows))) :]


def _staleness(log: History, recipe: ResolvedRecipe | None) -> float | None:
    ages = [row["staleness"] for row in log.steps if row.get("staleness")]
    return _mean([sum(int(age) * tokens for age, tokens in each.items()) / sum(each.values()) for each in ages])


def _log_ratio_lag_0(log: History, recipe: ResolvedRecipe | None) -> float | None:
    """Over all tokens of lag 0: some steps have few of them."""
    rows = [row for row in log.steps if row.get("mismatch_lag_0") is not None]
    tokens = [row["staleness"]["0"] for row in rows]
    return sum(n * row["mismatch_lag_0"] for n, row in zip(tokens, rows, strict=True)) / sum(tokens) if rows else None


def _length(log: History, recipe: ResolvedRecipe | None) -> float | None:
    tokens = _mean([row.get("mean_tokens") for row in log.steps])
    return tokens and recipe and tokens / recipe.generation.max_tokens


def _gain(log: History, recipe: ResolvedRecipe | None) -> float | None:
    rates = [row["pass_rate"] for row in log.evaluations if row.get("task") == log.evaluations[-1].get("task")]
    return rates[-1] - rates[0] if len(rates) > 1 else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


MeasureOfLog = Callable[[History, ResolvedRecipe | None], float | None]
REGIME_MEASURES: Mapping[str, MeasureOfLog] = {
    "passes": _passes,
    "retired": _retired,
    "staleness": _staleness,
    "log_ratio_lag_0": _log_ratio_lag_0,
    "log_ratio": _over("mismatch"),
    "update": _over("update"),
    "entropy_start": _over("entropy", _first),
    "entropy_end": _over("entropy", _last),
    "equal_rewards": _over("zero_variance"),
    "cut": _over("truncated"),
    "gain": _gain,
    "length": _length,
}
