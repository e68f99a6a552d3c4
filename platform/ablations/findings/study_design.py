"""The resolution of a study, for its own and for other designs, and the cheapest design for a wanted difference, or for
every claim of the study, if the effects are as large as published.

A study of another trainer is known by its curves alone: its designs are other numbers of seeds and other budgets.
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from ablations.answers.half_widths import BLIND, POWER, Sight, Sizes, level_sight, sights
from ablations.answers.known_scale import PAPER_PROMPTS, KnownScale, RunSpread, assumed, noise_of
from ablations.answers.questions import BY_NAME, LEVEL
from ablations.answers.repeats import OtherSweeps
from ablations.answers.run_to_run import run_to_run
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.errors import AblationsError
from ablations.findings.design_options import BUDGET_FACTORS, SEED_COUNTS, Blueprint, Costs, StudyDesign
from ablations.findings.earlier_runs import known_of_home
from ablations.findings.repeated_runs import repeats_of_home
from ablations.findings.results import Results
from ablations.fit.options import MIN_READINGS, FitSettings
from ablations.fit.result import Fit
from ablations.study.claims import Claim
from ablations.study.fittable import num_fittable
from ablations.terminal.progress_bar import Done, counted_off
from scalerl.recipe.command import AnyRecipe, CommandRecipe

ROOM_OF_SAME = 1.0 + float(ndtri((1 + POWER) / 2) / ndtri(0.975))
"""Margin over half-width h that "the same" needs, 1.65: the estimate of equal variants scatters with h / 1.96, and lies
within margin - h of 0 with a probability of POWER."""


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """One design with its cost and its resolution."""

    choice: StudyDesign
    costs: Costs
    seconds: float | None
    """Duration of all runs left to train, one after the other, at the speed of earlier runs; None if unknown."""
    num_readings: int
    """Number of fitted readings of one run, after step 0."""
    sights: dict[str, Sight]
    interaction: Sight = BLIND
    """For the interaction of two changes in level."""

    @property
    def can_be_fitted(self) -> bool:
        """True if there are enough readings for a fit."""
        return self.num_readings >= MIN_READINGS

    def to_json(self, unit_gpu_hours: float) -> dict[str, Any]:
        """Plain data for JSON, one line of `platform design --json`."""
        return {
            "seeds": list(self.choice.seeds),
            "budget": self.choice.budget,
            "samples": self.choice.samples,
            "num_runs": self.costs.num_runs,
            "cost": self.costs.whole,
            "cost_gpu_hours": self.costs.whole * unit_gpu_hours,
            "left": self.costs.left,
            "left_gpu_hours": self.costs.left * unit_gpu_hours,
            "seconds": self.seconds,
            "readings": self.num_readings,
            **{question: sight.to_json(question) for question, sight in self.sights.items()},
            "interaction": self.interaction.to_json(LEVEL.name),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Prospect:
    """Every considered design, the file's own first, and the knowledge behind the numbers."""

    blueprint: Blueprint
    known: KnownScale
    designs: tuple[Foreseen, ...]

    @property
    def own(self) -> Foreseen:
        """The file's own design."""
        return self.designs[0]

    @property
    def by_cost(self) -> list[Foreseen]:
        """The designs by the cost left to pay, then by total cost, then by samples."""
        return sorted(self.designs, key=lambda one: (one.costs.left, one.costs.whole, one.choice.samples))

    @property
    def advisable(self) -> list[Foreseen]:
        """The designs by cost that may be recommended: with two seeds or more, or with the requested number."""
        asked = self.blueprint.num_seeds
        return [one for one in self.by_cost if (len(one.choice.seeds) == asked if asked else len(one.choice.seeds) > 1)]

    def cheapest(self, question: str, detect: float) -> Foreseen | None:
        """The cheapest design that detects this difference, in ln for compute; None if no design does."""
        return next((one for one in self.advisable if one.sights[question].sees(detect)), None)

    def finest(self, question: str) -> Foreseen | None:
        """The design that detects the smallest difference; None if no design detects any."""
        seeing = [one for one in self.advisable if one.sights[question].seen is not None]
        return min(seeing, key=lambda one: one.sights[question].seen or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        study = self.blueprint.study
        return {
            "sweep": study.sweep.name,
            "scale": study.scale,
            "num_variants": self.blueprint.num_variants,
            "num_pairs": len(study.pairs),
            "num_possible_pairs": len(study.possible_pairs),
            "compute_unit_gpu_hours": self.blueprint.unit,
            "known": self.known.to_json(),
            "designs": [one.to_json(self.blueprint.unit) for one in self.by_cost],
        }


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


@dataclass(frozen=True, kw_only=True)
class ClaimDesign:
    """The design to train, and the claims that it would leave undecided."""

    foreseen: Foreseen
    unseen: tuple[Claim, ...]


def design_for(prospect: Prospect, claims: Sequence[Claim]) -> ClaimDesign:
    """The cheapest design with the file's own samples that decides every claim; the file's own design if none does.

    The search covers other seeds and budgets, but not other numbers of samples, which would make new runs.
    """
    own = prospect.own
    for one in prospect.advisable:
        if one.choice.samples == own.choice.samples and not _unseen(one, claims):
            return ClaimDesign(foreseen=one, unseen=())
    return ClaimDesign(foreseen=own, unseen=_unseen(own, claims))


def _unseen(one: Foreseen, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    return tuple(claim for claim in claims if not would_decide(one.sights[claim.of], claim))


def would_decide(sight: Sight, claim: Claim) -> bool:
    """True if the claim would be decided with a probability of POWER: a difference of the claimed size is seen, or for
    "the same" the interval of two equal variants lies within the margin.
    """
    if claim.says != "same":
        return sight.sees(claim.size)
    return sight.half_width is not None and sight.half_width * ROOM_OF_SAME <= claim.size


@dataclass(frozen=True, kw_only=True)
class CurveDesign:
    """One design: `CurveDesign(seeds=3, budget=16000.0, cost=144000.0, sights={"level": Sight(...), ...})`."""

    seeds: int
    budget: float
    """Compute of each run, in the file's unit."""
    cost: float
    """Compute of all runs."""
    sights: dict[str, Sight]

    def to_json(self) -> dict[str, Any]:
        sights = {question: sight.to_json(question) for question, sight in self.sights.items()}
        return {"seeds": self.seeds, "budget": self.budget, "cost": self.cost, **sights}


def foresee_curves(results: Results) -> list[CurveDesign]:
    """The designs of a study with as many variants, the cheapest first; law, noise and spread come from its curves, and
    the interval of evaluations from the reference.

    Raises AblationsError if the reference has no fit, or no variant has a second seed.
    """
    fits = results.variant(results.plan.reference).fits
    comparison = results.comparison
    if comparison is None or not fits:
        raise AblationsError(f"{results.title}: design needs a fit of {results.plan.reference!r}; it has none")
    if comparison.is_provisional:
        raise AblationsError(
            f"{results.title}: design needs a second seed of some variant, which shows how much runs differ"
        )
    known = _known(results, fits)
    every = float(np.median(np.diff(fits[0].curve.compute)))
    samples = fits[0].curve.samples
    designs = []
    for factor in BUDGET_FACTORS:
        budget = factor * results.plan.budget_gpu_hours
        compute = np.arange(0.0, budget * (1 + 1e-9), every)
        runs = SimulatedRuns(
            known=known,
            compute=compute,
            samples=None if samples is None else float(np.median(samples)),
            settings=FitSettings(ceiling=results.plan.fit_settings.ceiling),
        )
        for count in SEED_COUNTS:
            sizes = Sizes(num_variants=len(comparison.variants), num_seeds=count)
            cost = len(comparison.variants) * count * budget
            designs.append(CurveDesign(seeds=count, budget=budget, cost=cost, sights=sights(runs, sizes)))
    return sorted(designs, key=lambda one: one.cost)


def _known(results: Results, fits: list[Fit]) -> KnownScale:
    assert results.comparison is not None
    run_sd, autocorrelation = noise_of(fits)
    return KnownScale(
        law=sorted(fits, key=lambda fit: float(fit.predict(fit.window[1])[0]))[len(fits) // 2].predict,
        run_sd=run_sd,
        autocorrelation=autocorrelation,
        prompts=PAPER_PROMPTS,
        sampling_share=1.0,
        spread=RunSpread.of(results.comparison.spreads),
        num_runs=len(results.runs),
    )
