"""The comparison as in the ScaleRL paper, for reproduction: its grid, its margin of 0.02, its B at a common A.

Two ceilings within 0.02 of each other are equal (ScaleRL §4, A.5). Only for equal ceilings is B compared, after a refit
with A fixed at the mean of all that equal the reference's. For decisions use `ablations.answers.compare`: between runs
of one recipe the paper's rule sees differences that do not exist, see `WARNING`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, geometric_mean
from typing import Any

from ablations.answers.answer import NO_DIFFERENCE, REFERENCE
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
class PaperVariant:
    """One variant by the paper's rule, with a fit for each seed; numbers are means over seeds.

    PaperVariant(name="loo-loss", fits=(fit,), ceiling_difference=-0.06, ceiling_verdict="ceiling down")
    """

    name: str
    fits: tuple[PaperFit, ...]
    ceiling_difference: float
    """A minus the reference's A."""
    ceiling_verdict: str
    """Verdict of `paper_rule`; "no difference seen" is the paper's "equal"."""
    refits: tuple[PaperFit, ...] = ()
    """The fits with A fixed at the common A; empty if A differs from the reference's by more than PAPER_MARGIN."""
    delta_B: float | None = None
    """B at the common A minus the reference's; None without refits."""

    @property
    def A(self) -> float:
        """Mean over seeds."""
        return fmean(fit.A for fit in self.fits)

    @property
    def B(self) -> float:
        """Mean over seeds."""
        return fmean(fit.B for fit in self.fits)

    @property
    def C_mid(self) -> float:
        """Geometric mean over seeds."""
        return geometric_mean(fit.C_mid for fit in self.fits)

    @property
    def B_at_common_A(self) -> float | None:
        """Mean B of the refits; None without refits."""
        return fmean(fit.B for fit in self.refits) if self.refits else None

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
            "ceiling_difference": self.ceiling_difference,
            "ceiling_verdict": self.ceiling_verdict,
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
    notes: tuple[str, ...] = ()
    """Notes of the import, for runs of other trainers."""

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
            "notes": list(self.notes),
        }


def paper_compare(
    runs_by_variant: Mapping[str, Sequence[tuple[Curve, float]]],
    reference: str,
    *,
    fit_from: float = EARLY_CUTOFF_GPU_HOURS,
    budget: float = PAPER_BUDGET_GPU_HOURS,
    grid: PaperGrid = "stated",
    left_out: Sequence[str] = (),
    done: Done | None = None,
) -> PaperComparison:
    """Compare every variant, one run per seed, with the variant called `reference` by the paper's rule.

    A run is its curve and the largest compute to fit. A variant is left out with a reason if one of its runs cannot be
    fitted; `left_out` are earlier reasons. Raises AblationsError if the reference is left out.
    """

    def fitted(name: str, A: float | None = None) -> tuple[PaperFit, ...]:
        return tuple(
            paper_fit(curve, fit_from=fit_from, fit_to=fit_to, grid=grid, budget=budget, A=A)
            for curve, fit_to in runs_by_variant[name]
        )

    fits: dict[str, tuple[PaperFit, ...]] = {}
    reasons = list(left_out)
    for name in counted_off([*runs_by_variant], done):
        try:
            fits[name] = fitted(name)
        except AblationsError as error:
            reasons.append(f"{name}: {error}")
    if reference not in fits:
        own = [one for one in reasons if one.startswith(f"{reference}: ")] or reasons
        why = "; ".join(own) or f"variants with runs: {', '.join(runs_by_variant) or 'none'}"
        raise AblationsError(f"paper mode compares with {reference!r}, which has no fit; {why}")

    A = {name: fmean(fit.A for fit in of_variant) for name, of_variant in fits.items()}
    ceiling_difference = {name: round(of_variant - A[reference], DIGITS) for name, of_variant in A.items()}
    equal = [name for name in fits if paper_rule(ceiling_difference[name]) == NO_DIFFERENCE]
    common_A = fmean(A[name] for name in equal)
    refits = {name: fitted(name, common_A) for name in equal}
    B = {name: fmean(fit.B for fit in of_variant) for name, of_variant in refits.items()}
    return PaperComparison(
        reference=reference,
        variants=tuple(
            PaperVariant(
                name=name,
                fits=of_variant,
                ceiling_difference=ceiling_difference[name],
                ceiling_verdict=REFERENCE if name == reference else paper_rule(ceiling_difference[name]),
                refits=refits.get(name, ()),
                delta_B=B[name] - B[reference] if name in B else None,
            )
            for name, of_variant in fits.items()
        ),
        common_A=common_A,
        grid=grid,
        fit_from=fit_from,
        budget=budget,
        reasons=tuple(reasons),
    )


def paper_comparison(results: Results, *, done: Done | None = None) -> PaperComparison:
    """The variants of a sweep by the paper's rule, on the paper's grid.

    The early cut-off is the plan's own, else the paper's share of the budget, 1.5k of 16k; midpoints have the same
    proportion to the budget. The window of a run ends where that of `fit_curve` ended, so it excludes a collapse. If an
    A lies at the end of the stated grid, which ends at 0.8, all runs are fitted on the finer grid. `done` receives the
    number of fitted variants and the total.
    """
    plan = results.plan
    budget = plan.budget_gpu_hours
    fit_from = plan.fit_from_gpu_hours or EARLY_CUTOFF_GPU_HOURS / PAPER_BUDGET_GPU_HOURS * budget
    runs = {one.name: [(fit.curve, fit.window[1]) for fit in one.fits] for one in results.variants if one.fits}
    on_grid = partial(
        paper_compare, runs, plan.reference, fit_from=fit_from, budget=budget, left_out=results.reasons, done=done
    )
    stated = on_grid(grid="stated")
    found = on_grid(grid="finer") if any("A" in variant.edges for variant in stated.variants) else stated
    return replace(found, notes=results.notes_on_curves)
