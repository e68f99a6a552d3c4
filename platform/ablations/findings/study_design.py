"""The resolution of a study, for its own and for other designs, from earlier runs of its scale."""

from collections import Counter
from collections.abc import Set
from dataclasses import replace
from functools import cache

import numpy as np

from ablations.answers.half_widths import BLIND, Sizes, level_sight, sights
from ablations.answers.known_scale import PAPER_PROMPTS, KnownScale, RunSpread, assumed
from ablations.answers.questions import BY_NAME, QUESTIONS
from ablations.answers.repeats import OtherSweeps
from ablations.answers.run_to_run import run_to_run
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.findings.cheapest_design import Foreseen, Prospect
from ablations.findings.design_options import Blueprint, Costs, StudyDesign
from ablations.findings.earlier_runs import known_of_home
from ablations.findings.own_spread import own_spread
from ablations.findings.repeated_runs import repeats_of_home
from ablations.fit.options import MIN_READINGS, FitSettings
from ablations.fit.result import Fit
from ablations.home.plan import PlannedRun
from ablations.readings.fitted_run import read_run
from ablations.study.fittable import num_fittable
from ablations.terminal.progress_bar import Done, counted_off
from scalerl.recipe.command import AnyRecipe, CommandRecipe


def foresee(
    blueprint: Blueprint,
    *,
    noise: float | None = None,
    only_own: bool = False,
    done: Done | None = None,
) -> Prospect:
    """Predict what each design can detect, from earlier runs at this scale in the home folder, else from assumptions.

    `noise` replaces the run-to-run standard deviation in either case. With `only_own`, only the file's own design is
    computed. After each design, `done` receives the number of finished designs and the total.
    """
    study = blueprint.study
    reference = study.reference.recipe
    found = known_of_home(blueprint.home, study.scale, reference, study.sweep.fit.task)
    known = replace(found, others=_others(blueprint)) if found else assumed_of(reference, budget=blueprint.budget)
    stated = None if noise is None else known.stated(noise)
    as_written = None if stated else _spread_as_written(blueprint)

    @cache
    def known_at(budget: float) -> KnownScale:
        return stated or _known_at(blueprint, known, as_written, budget)

    choices = [blueprint.as_written] if only_own else list(blueprint.choices())
    simulated: dict[tuple[float, int], SimulatedRuns] = {}
    designs = tuple(
        _foreseen(blueprint, known_at(choice.budget), choice, simulated) for choice in counted_off(choices, done)
    )
    return Prospect(blueprint=blueprint, known=known_at(blueprint.budget), designs=designs)


def _known_at(blueprint: Blueprint, known: KnownScale, as_written: RunSpread | None, budget: float) -> KnownScale:
    """The knowledge of a scale with the run-to-run spread that `platform compare` finds at this budget.

    At the file's own budget that is the spread `as_written`. At another budget it is that of all runs of the home
    folder that reach it, for runs may differ less if trained far beyond; if too few do, the spread at the file's own
    budget, and at last that of runs of any length.
    """
    if budget != blueprint.as_written.budget:
        says = _repeats(blueprint, replace(blueprint.as_written, budget=budget), own=frozenset()).says
        found = {one.name: run_to_run(says.get(one.name, ())) for one in QUESTIONS}
        if found["level"].is_known:
            return replace(known, spread=RunSpread.of(found))
    return replace(known, spread=as_written) if as_written else known


def _spread_as_written(blueprint: Blueprint) -> RunSpread | None:
    """The spread that the comparison finds from the study's own runs in this home folder and from other sweeps."""
    study, settings = blueprint.study, _read_settings(blueprint, blueprint.as_written)
    read: dict[str, list[tuple[str, Fit]]] = {variant.name: [] for variant in study.variants}
    for run in study.runs:
        folder = blueprint.home.run(run.id)
        if folder.metrics.exists():
            fit = read_run(folder, run.variant, PlannedRun(seed=run.seed, id=run.id), settings).fit
            read[run.variant] += [] if fit is None else [(run.id, fit)]
    repeated = [found for found in read.values() if len(found) > 1]
    others = _repeats(
        blueprint,
        blueprint.as_written,
        own={run_id for found in repeated for run_id, _ in found},
        freedom=sum(len(found) - 1 for found in repeated),
    )
    fits = {name: [fit for _, fit in found] for name, found in read.items() if found}
    return own_spread(fits, study.reference.name, others)


def _others(blueprint: Blueprint) -> OtherSweeps:
    """All the evidence that `platform compare` may take from other sweeps of the home folder."""
    runs = blueprint.study.runs
    seeds = Counter(run.variant for run in runs)
    return _repeats(blueprint, blueprint.as_written, own={run.id for run in runs if seeds[run.variant] > 1})


def _repeats(blueprint: Blueprint, choice: StudyDesign, *, own: Set[str], freedom: int = 0) -> OtherSweeps:
    """The repeated runs of the home folder except the `own` ones, fitted as in this design."""
    study = blueprint.study
    return repeats_of_home(
        blueprint.home,
        study.scale,
        sweep=study.sweep.name,
        like=study.reference.recipe,
        settings=_read_settings(blueprint, choice),
        own=own,
        freedom=freedom,
    )


def _read_settings(blueprint: Blueprint, choice: StudyDesign) -> FitSettings:
    """The settings with which a sweep of this design reads its runs, to the digit, so that kept fits are found."""
    window, compute = blueprint.study.sweep.budget, choice.budget * blueprint.unit
    settings = replace(
        settings_of(blueprint, choice), fit_to=window.fit_on * compute, task=blueprint.study.sweep.fit.task
    )
    return settings if settings.fit_from == "auto" else replace(settings, fit_from=window.fit_from * compute)


def _foreseen(
    blueprint: Blueprint, known: KnownScale, choice: StudyDesign, simulated: dict[tuple[float, int], SimulatedRuns]
) -> Foreseen:
    """The resolution of one design; `simulated` caches the simulated runs, which all numbers of seeds share."""
    window = blueprint.study.sweep.budget
    number = num_fittable(budget=choice.budget, every=blueprint.every, fit_from=window.fit_from, fit_on=window.fit_on)
    runs = SimulatedRuns(
        known=known,
        compute=due(blueprint, choice),
        samples=known.prompts * choice.samples / known.sampling_share,
        settings=settings_of(blueprint, choice),
    )
    runs = simulated.setdefault((choice.budget, choice.samples), runs)
    sizes = Sizes(num_variants=blueprint.num_variants, num_seeds=len(choice.seeds))
    can_tell = number >= MIN_READINGS and sizes.freedom(known.others.of("level")) > 0
    costs = blueprint.costs(choice)
    return Foreseen(
        choice=choice,
        costs=costs,
        seconds=_seconds(blueprint, known, choice, costs),
        num_readings=number,
        sights=sights(runs, sizes) if can_tell else dict.fromkeys(BY_NAME, BLIND),
        interaction=level_sight(runs, sizes, sides=4) if can_tell else BLIND,
    )


def due(blueprint: Blueprint, choice: StudyDesign) -> np.ndarray:
    """Compute of the readings of one run in GPU-hours, step 0 first."""
    return np.arange(blueprint.num_evaluations(choice) + 1) * blueprint.every * blueprint.unit


def settings_of(blueprint: Blueprint, choice: StudyDesign) -> FitSettings:
    """Fit settings for a curve of this design; the window ends with the reading due at its end."""
    sweep, compute = blueprint.study.sweep, due(blueprint, choice)
    budget = choice.budget * blueprint.unit
    fit_to = sweep.budget.fit_on * budget
    later = compute[compute >= fit_to * (1 - 1e-9)]
    return FitSettings(
        fit_from="auto" if sweep.fit.cutoff == "auto" else sweep.budget.fit_from * budget * (1 - 1e-9),
        fit_to=float(later[0]) if later.size else fit_to,
        r0=sweep.fit.r0,
        loss=sweep.fit.loss,
        ceiling=blueprint.study.ceiling,
    )


def _seconds(blueprint: Blueprint, known: KnownScale, choice: StudyDesign, costs: Costs) -> float | None:
    if known.speed is None:
        return None
    more = choice.samples / blueprint.as_written.samples
    evaluations = costs.num_runs * (blueprint.num_evaluations(choice) + 1) * costs.left_share
    trained = costs.left * blueprint.unit * known.speed.seconds_per_gpu_hour
    return trained + evaluations * more * known.speed.seconds_per_evaluation


def assumed_of(reference: AnyRecipe, *, budget: float = 1.0) -> KnownScale:
    """The paper's numbers for the scale of a recipe, with the held-out prompts of its tasks.

    A program has no scale: its budget takes the place of the paper's.
    """
    if isinstance(reference, CommandRecipe):
        return assumed(unit_gpu_hours=budget, prompts=PAPER_PROMPTS)
    prompts = sum(getattr(task, "validation_prompts", PAPER_PROMPTS) for task in reference.tasks)
    return assumed(unit_gpu_hours=reference.compute_unit_gpu_hours, prompts=prompts)
