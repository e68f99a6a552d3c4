"""The comparison as in the ScaleRL paper, for reproduction: its grid, its margin of 0.02, its B at a common A.

Two ceilings within 0.02 of each other are equal (ScaleRL §4, A.5). Only for equal ceilings is B compared, after a refit
with A fixed at the mean of all that equal the reference's. For decisions use `ablations.answers.compare`: between runs
of one recipe the paper's rule sees differences that do not exist, see `WARNING`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, geometric_mean
from typing import Any

from ablations.answers.paper_grid import EARLY_CUTOFF_GPU_HOURS, PAPER_BUDGET_GPU_HOURS, PaperFit, PaperGrid, paper_fit
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE, paper_rule
from ablations.errors import AblationsError
from ablations.findings.results import Results
from ablations.fit.curve import Curve
from ablations.terminal.progress_bar import Done, counted_off
from ablations.text import counted

DIGITS = 9
"""Rounding digits: 0.61 - 0.59 is a little over 0.02 in floating point, though both are nodes of the grid."""
RULE = f"paper's {PAPER_RULE}"
WARNING = (
    "Paper mode reproduces arXiv 2510.13786; do not decide by it. Of all pairs of runs of one recipe, one seed each, "
    "A differs by more than 0.02 in up to 32 %; of those with A within 0.02, B at the common A differs by more than "
    "1.96 standard errors in 56-74 % (simulated: benchmarks/paper_grid.py)."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperRun:
    """The readings of one run, and the end of its fit window: `PaperRun(curve=curve, fit_to=8000.0)`."""

    curve: Curve
    fit_to: float = math.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperVariant:
    """One variant by the paper's rule, with a fit for each seed; numbers are means over seeds.

    PaperVariant(name="loo-loss", fits=(fit,), delta_A=-0.06, difference="ceiling down")
    """

    name: str
    fits: tuple[PaperFit, ...]
    delta_A: float
    """A minus the reference's A."""
    difference: str
    """Verdict of `paper_rule`; "no difference seen" is the paper's "equal"."""
    refits: tuple[PaperFit, ...] = ()
    """The fits with A fixed at the common A; empty if A differs from the reference's by more than PAPER_MARGIN."""
    delta_B: float | None = None
    """B at the common A minus the reference's; None without refits."""

    @property
    def A(self) -> float:
        """Mean over seeds."""
        return mean_asymptote(self.fits)

    @property
    def B(self) -> float:
        """Mean over seeds."""
        return mean_exponent(self.fits)

    @property
    def C_mid(self) -> float:
        """Geometric mean over seeds."""
        return geometric_mean(fit.C_mid for fit in self.fits)

    @property
    def B_at_common_A(self) -> float | None:
        """Mean B of the refits; None without refits."""
        return mean_exponent(self.refits) if self.refits else None

    @property
    def edges(self) -> tuple[str, ...]:
        """The parameters among A, B and C_mid that lie at the end of the grid for any seed."""
        return tuple(name for name in ("A", "B", "C_mid") if any(name in fit.edges for fit in self.fits))

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, including every seed's fit."""
        return {
            "curve": self.name,
            "num_seeds": len(self.fits),
            "A": self.A,
            "A_margin": PAPER_MARGIN,
            "B": self.B,
            "C_mid": self.C_mid,
            "delta_A": self.delta_A,
            "difference": self.difference,
            "B_at_common_A": self.B_at_common_A,
            "delta_B_at_common_A": self.delta_B,
            "edges": list(self.edges),
            "fits": [fit.to_json() for fit in self.fits],
            "refits_at_common_A": [fit.to_json() for fit in self.refits],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperComparison:
    """Every variant by the paper's rule, including the reference, in the order given."""

    reference: str
    variants: tuple[PaperVariant, ...]
    common_A: float
    """Mean A of the reference and of all variants equal to it."""
    grid: PaperGrid
    fit_from: float
    """Compute up to which readings were left out."""
    budget: float
    """Budget that scales the grid of C_mid."""
    reasons: tuple[str, ...] = ()
    """Reasons why runs have no fit."""

    def __repr__(self) -> str:
        return f"<Comparison of {counted(len(self.variants), 'variant')} with {self.reference!r} by the {RULE}>"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"mode": "paper", "rule": ..., "common_A": 0.61, "variants": [...], "warning": ...}."""
        return {
            "mode": "paper",
            "reference": self.reference,
            "rule": RULE,
            "common_A": self.common_A,
            "grid": self.grid,
            "fit_from": self.fit_from,
            "budget": self.budget,
            "variants": [variant.to_json() for variant in self.variants],
            "warning": WARNING,
            "reasons": list(self.reasons),
        }


def paper_compare(
    runs_by_variant: Mapping[str, Sequence[PaperRun]],
    reference: str,
    *,
    fit_from: float = EARLY_CUTOFF_GPU_HOURS,
    budget: float = PAPER_BUDGET_GPU_HOURS,
    grid: PaperGrid = "stated",
    left_out: Sequence[str] = (),
    done: Done | None = None,
) -> PaperComparison:
    """Compare every variant, one run per seed, with the variant called `reference` by the paper's rule.

    A variant is left out with a reason if one of its runs cannot be fitted; `left_out` are earlier reasons. Raises
    AblationsError if the reference is left out.
    """
    fit_runs = partial(_fits, fit_from=fit_from, budget=budget, grid=grid)
    fits_by_variant: dict[str, tuple[PaperFit, ...]] = {}
    reasons = list(left_out)
    for name, runs in counted_off([*runs_by_variant.items()], done):
        assert runs, f"variant {name!r} has no run"
        try:
            fits_by_variant[name] = fit_runs(runs)
        except AblationsError as error:
            reasons.append(f"{name}: {error}")
    if reference not in fits_by_variant:
        why = "; ".join(reasons) or f"variants with runs: {', '.join(runs_by_variant) or 'none'}"
        raise AblationsError(f"paper mode compares with {reference!r}, which has no fit; {why}")

    baseline = mean_asymptote(fits_by_variant[reference])
    variants = [_against(baseline, name, fits) for name, fits in fits_by_variant.items()]
    equal = [variant for variant in variants if variant.difference == "no difference seen"]
    common_A = fmean(variant.A for variant in equal)
    refits = {variant.name: fit_runs(runs_by_variant[variant.name], A=common_A) for variant in equal}
    baseline_B = mean_exponent(refits[reference])
    return PaperComparison(
        reference=reference,
        variants=tuple(
            replace(
                variant,
                difference="reference" if variant.name == reference else variant.difference,
                refits=refits.get(variant.name, ()),
                delta_B=mean_exponent(refits[variant.name]) - baseline_B if variant.name in refits else None,
            )
            for variant in variants
        ),
        common_A=common_A,
        grid=grid,
        fit_from=fit_from,
        budget=budget,
        reasons=tuple(reasons),
    )


def _against(baseline: float, name: str, fits: tuple[PaperFit, ...]) -> PaperVariant:
    """Compare a variant with the reference's mean A."""
    delta = round(mean_asymptote(fits) - baseline, DIGITS)
    return PaperVariant(name=name, fits=fits, delta_A=delta, difference=paper_rule(delta))


def paper_comparison(results: Results, *, done: Done | None = None) -> PaperComparison:
    """The variants of a sweep by the paper's rule, on the paper's grid.

    The early cut-off is the plan's own, else the paper's share of the budget, 1.5k of 16k; midpoints have the same
    proportion to the budget. The window of a run ends where that of `fit_curve` ended, so it excludes a collapse. If an
    A lies at the end of the stated grid, which ends at 0.8, all runs are fitted on the finer grid. `done` receives the
    number of fitted variants and the total.
    """
    plan = results.plan
    runs_by_variant = {
        variant.name: [PaperRun(curve=fit.curve, fit_to=fit.window[1]) for fit in variant.fits]
        for variant in results.variants
        if variant.fits
    }
    budget = plan.budget_gpu_hours
    fit_from = plan.fit_from_gpu_hours or EARLY_CUTOFF_GPU_HOURS / PAPER_BUDGET_GPU_HOURS * budget

    def on(grid: PaperGrid) -> PaperComparison:
        return paper_compare(
            runs_by_variant,
            plan.reference,
            fit_from=fit_from,
            budget=budget,
            grid=grid,
            left_out=results.reasons,
            done=done,
        )

    stated = on("stated")
    return on("finer") if any("A" in variant.edges for variant in stated.variants) else stated


def _fits(
    runs: Sequence[PaperRun], *, fit_from: float, budget: float, grid: PaperGrid, A: float | None = None
) -> tuple[PaperFit, ...]:
    return tuple(
        paper_fit(run.curve, fit_from=fit_from, fit_to=run.fit_to, grid=grid, budget=budget, A=A) for run in runs
    )


def mean_asymptote(fits: Sequence[PaperFit]) -> float:
    """Mean A over seeds."""
    return fmean(fit.A for fit in fits)


def mean_exponent(fits: Sequence[PaperFit]) -> float:
    """Mean B over seeds."""
    return fmean(fit.B for fit in fits)
