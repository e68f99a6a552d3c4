"""The resolution of a study, for its own and for other designs, from earlier runs of its scale."""

from collections import Counter
from collections.abc import Set
from dataclasses import replace
from functools import cache

import numpy as np

from ablations.answers.half_widths import BLIND, Sizes, level_sight, sights
from ablations.answers.known_scale import PAPER_PROMPTS, KnownScale, RunSpread, assumed
from ablations.answers.questions import BY_NAME
from ablations.answers.repeats import OtherSweeps
from ablations.answers.run_to_run import run_to_run
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.findings.cheapest_design import Foreseen, Prospect
from ablations.findings.design_options import Blueprint, Costs, StudyDesign
from ablations.findings.earlier_runs import known_of_home
from ablations.findings.repeated_runs import repeats_of_home
from ablations.fit.options import MIN_READINGS, FitSettings
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
    """The resolution of every design, from earlier runs of the scale in the home folder, else from assumptions.

    `noise` replaces the run-to-run standard deviation of either. With `only_own`, only the file's own design is
    computed. After each design, `done` receives the number of finished designs and the total.
    """
    study = blueprint.study
    reference = study.reference.recipe
    found = known_of_home(blueprint.home, study.scale, reference, study.sweep.fit.task)
    known = replace(found, others=_others(blueprint)) if found else assumed_of(reference, budget=blueprint.budget)
    stated = None if noise is None else known.stated(noise)

    @cache
    def known_at(budget: float) -> KnownScale:
        return stated or _known_at(blueprint, known, budget)

    choices = [blueprint.as_written] if only_own else list(blueprint.choices())
    simulated: dict[tuple[float, int], SimulatedRuns] = {}
    designs = tuple(
        _foreseen(blueprint, known_at(choice.budget), choice, simulated) for choice in counted_off(choices, done)
    )
    return Prospect(blueprint=blueprint, known=known_at(blueprint.budget), designs=designs)


def _known_at(blueprint: Blueprint, known: KnownScale, budget: float) -> KnownScale:
    """The knowledge of a scale with the run-to-run spread of all its runs that reach the budget; if too few do, of runs
    of any length.

    That is the spread that `platform compare` finds there. Runs of the home folder may have been extended far beyond
    the budget, where they differ less, or where one has collapsed.
    """
    choice = replace(blueprint.as_written, budget=budget)
    says = _repeats(blueprint, choice, own=frozenset()).says if known.num_runs else {}
    spreads = {name: run_to_run(says.get(name, ())) for name in ("level", "ceiling", "target")}
    return replace(known, spread=RunSpread.of(spreads)) if spreads["level"].is_known else known


def _others(blueprint: Blueprint) -> OtherSweeps:
    """All the evidence that `platform compare` may take from other sweeps of the home folder."""
    runs = blueprint.study.runs
    seeds = Counter(run.variant for run in runs)
    return _repeats(blueprint, blueprint.as_written, own={run.id for run in runs if seeds[run.variant] > 1})


def _repeats(blueprint: Blueprint, choice: StudyDesign, *, own: Set[str]) -> OtherSweeps:
    """The repeated runs of the home folder except the `own` ones, fitted as in this design."""
    study = blueprint.study
    return repeats_of_home(
        blueprint.home,
        study.scale,
        sweep=study.sweep.name,
        like=study.reference.recipe,
        settings=replace(settings_of(blueprint, choice), task=study.sweep.fit.task),
        own=own,
        freedom=0,
    )


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
