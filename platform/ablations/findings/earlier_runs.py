"""What is known about a scale from all runs in a home folder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ablations.answers.known_scale import PAPER_PROMPTS, KnownScale, RunSpread, Speed, noise_of
from ablations.answers.level import LAST_SHARE, compared_at, last_compute, level_of, mean_weights
from ablations.answers.run_to_run import run_to_run
from ablations.findings.repeated_runs import SAME, UNUSABLE, says_of_group
from ablations.fit.result import Fit
from ablations.home.home import Home
from ablations.home.started_sweep import plans_of
from ablations.readings.fitted_run import read_run
from scalerl.errors import CannotResume
from scalerl.recipe.command import AnyRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

MOST_RUNS = 48
"""Limit on the runs that are read, the most recent sweep first: a fit takes some 40 ms."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EarlierRun:
    """A run of a home folder with its recipe and its fit."""

    recipe: AnyRecipe
    fit: Fit
    folder: RunFolder
    unkept: str
    """The reason why its fit could not be saved; empty if it was."""


def known_of_home(home: Home, scale: str, reference: AnyRecipe, task: str | None) -> KnownScale | None:
    """What is known about the scale from earlier runs (only the rising ones, if any); None if none can be fitted."""
    runs = list(islice(_earlier_runs(home, scale, reference, task), MOST_RUNS))
    usable = [run for run in runs if run.fit.verdict not in UNUSABLE]
    usable = usable or [run for run in runs if run.fit.verdict != "collapsed"]
    if not usable:
        return None
    # Noise too is the reference's if known, since a recipe that eq. 1 fits badly has more noise.
    own = [run for run in usable if run.recipe.canonical_json() == reference.canonical_json()]
    fits = [run.fit for run in own or usable]
    middle, (run_sd, autocorrelation) = _middle(fits), noise_of(fits)
    return KnownScale(
        law=middle.predict,
        run_sd=run_sd,
        autocorrelation=autocorrelation,
        prompts=_prompts(usable),
        sampling_share=_sampling_share([run.fit for run in usable]),
        spread=_spread(usable),
        speed=_speed(usable, reference.evaluation.samples),
        num_runs=len(usable),
        unkept=next((run.unkept for run in runs if run.unkept), ""),
    )


def _earlier_runs(home: Home, scale: str, reference: AnyRecipe, task: str | None) -> Iterator[EarlierRun]:
    """Every run with a fit, once, by the plan that fits most of it; lazily, so that no more are fitted than needed."""
    like, seen = reference.canonical(*SAME), set[str]()
    for plan in sorted(plans_of(home, scale), key=lambda plan: plan.fit_to_gpu_hours, reverse=True):
        settings = replace(plan.fit_settings, task=task)
        for variant in plan.variants:
            for run in variant.runs:
                if run.id in seen:
                    continue
                seen.add(run.id)
                folder = home.run(run.id)
                recipe = _recipe_of(folder)
                if recipe is None or recipe.canonical(*SAME) != like:
                    continue
                fitted = read_run(folder, variant.name, run, settings)
                if fitted.fit is not None:
                    yield EarlierRun(recipe=recipe, fit=fitted.fit, folder=folder, unkept=fitted.unkept)


def _recipe_of(folder: RunFolder) -> AnyRecipe | None:
    """The recipe of a run; None if the run has not started or this version cannot read its recipe."""
    try:
        return folder.read_recipe()[0]
    except CannotResume:
        return None


def _middle(fits: Sequence[Fit]) -> Fit:
    """The fit with the median pass rate at the compute at which the runs are compared."""
    compute = compared_at(fits)
    return sorted(fits, key=lambda fit: float(fit.predict(compute)[0]))[len(fits) // 2]


def _prompts(runs: Sequence[EarlierRun]) -> int:
    """Number of held-out prompts, derived from the samples of the readings."""
    counts = [
        float(np.median(run.fit.curve.samples)) / run.recipe.evaluation.samples
        for run in runs
        if run.fit.curve.samples is not None
    ]
    return round(float(np.median(counts))) if counts else PAPER_PROMPTS


def _sampling_share(fits: Sequence[Fit]) -> float:
    """Sampling variance of levels divided by p (1 - p) / n; 1 if no run records its number of samples."""
    shares = []
    for fit in fits:
        curve, compute = fit.curve, last_compute(fit)
        level = level_of(curve, compute)
        if level is not None and curve.samples is not None and level.variance > 0:
            weights = mean_weights(curve.compute, (1 - LAST_SHARE) * compute, compute)
            binomial = float(weights**2 @ (curve.score * (1 - curve.score) / curve.samples))
            shares.append(level.variance / binomial)
    return float(np.mean(shares)) if shares else 1.0


def _spread(runs: Sequence[EarlierRun]) -> RunSpread:
    groups: dict[str, list[Fit]] = {}
    for run in runs:
        groups.setdefault(run.recipe.canonical_json(), []).append(run.fit)
    says = [says_of_group(fits) for fits in groups.values() if len(fits) > 1]
    return RunSpread.of(
        {
            question: run_to_run([found for one in says if (found := one.get(question))])
            for question in ("level", "ceiling", "compute")
        }
    )


def _speed(runs: Iterable[EarlierRun], samples: int) -> Speed | None:
    """The speed by the clocks of run logs, for evaluations with this many samples; None if no log has the times."""
    paces, evaluations = [], []
    for run in runs:
        rows = list(read_rows(run.folder.metrics))
        last = next((row for row in reversed(rows) if row["kind"] == "train" and "off_clock_s" in row), None)
        measured = sum(row["kind"] == "eval" and "share" not in row for row in rows)
        spent = run.folder.read_status()
        if last is not None and measured and spent.compute_gpu_hours > 0:
            off_clock = last["off_clock_s"].get("evaluate", 0.0)
            paces.append(max(spent.wall_s - off_clock, 0.0) / spent.compute_gpu_hours)
            evaluations.append(off_clock / measured * samples / run.recipe.evaluation.samples)
    if not paces:
        return None
    return Speed(seconds_per_gpu_hour=float(np.median(paces)), seconds_per_evaluation=float(np.median(evaluations)))
