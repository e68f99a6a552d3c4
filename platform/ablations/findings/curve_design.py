"""Designs for a study of another trainer, from nothing but its curves: other numbers of seeds and other budgets."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ablations.answers.half_widths import Sight, Sizes, sights
from ablations.answers.known_scale import PAPER_PROMPTS, KnownScale, RunSpread, noise_of
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.errors import AblationsError
from ablations.findings.design_options import BUDGET_FACTORS, SEED_COUNTS
from ablations.findings.own_spread import own_spread
from ablations.findings.results import Results
from ablations.fit.options import MIN_READINGS, FitSettings
from ablations.fit.result import Fit


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
        if compute.size <= MIN_READINGS:
            continue  # no run of this budget could be fitted
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
    of_variants = {variant.name: variant.fits for variant in results.variants if variant.fits}
    spread = own_spread(of_variants, results.plan.reference) or RunSpread.of(results.comparison.spreads)
    run_sd, autocorrelation = noise_of(fits)
    return KnownScale(
        law=sorted(fits, key=lambda fit: float(fit.predict(fit.window[1])[0]))[len(fits) // 2].predict,
        run_sd=run_sd,
        autocorrelation=autocorrelation,
        prompts=PAPER_PROMPTS,
        sampling_share=1.0,
        spread=spread,
        num_runs=len(results.runs),
    )
