"""Every variant against the reference: difference in A with its interval, compute to a common target, a verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.asymptote import AsymptoteEstimate, Verdict, verdict_on_interval
from ablations.fit.result import Fit
from ablations.verdict.differences import c_mid_ratio, ceiling_difference, compute_ratio, mean_ceiling
from ablations.verdict.interval import Interval
from ablations.verdict.rules import Difference, Efficiency, ceiling_rule, efficiency_rule, paper_rule


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant against the reference. None stands for a number that the runs do not bound or do not give.

    VariantResult(curve="loss=dapo", num_seeds=1, A=0.552, A_lo=0.540, A_hi=0.566, B=1.8, C_mid=2600.0, R_0=0.31,
                  verdict="resolved", points=31, window=(1704.0, 7881.0), cost=8000.0, delta_A=-0.058,
                  delta_A_lo=-0.087, delta_A_hi=-0.029, delta_rule="posteriors of the fits and an assumed ...",
                  compute_ratio=1.2, compute_ratio_lo=1.0, compute_ratio_hi=1.4, C_mid_ratio=1.1,
                  C_mid_ratio_lo=0.9, C_mid_ratio_hi=1.4, difference="ceiling down", paper_rule="ceiling down",
                  efficiency="no difference seen")
    """

    curve: str
    num_seeds: int
    A: float
    """Mean over seeds; show `asymptote`, as this number means nothing without A_hi."""
    A_lo: float
    A_hi: float | None
    B: float | None
    """Geometric mean over seeds, like C_mid; None for a curve that does not rise."""
    C_mid: float | None
    R_0: float
    verdict: Verdict
    points: int
    """Readings fitted, over all seeds."""
    window: tuple[float, float]
    cost: float
    delta_A: float | None
    """A less the reference's A."""
    delta_A_lo: float | None
    delta_A_hi: float | None
    delta_rule: str
    """Where the interval of delta_A comes from."""
    compute_ratio: float | None
    """Compute that the variant needs to reach the target, over what the reference needs; under 1 is faster."""
    compute_ratio_lo: float | None
    compute_ratio_hi: float | None
    """Like delta_A's: from the seeds, or from the posteriors and the assumed run-to-run sd of A."""
    C_mid_ratio: float | None
    C_mid_ratio_lo: float | None
    C_mid_ratio_hi: float | None
    difference: Difference
    """What the interval of delta_A says of the ceiling."""
    paper_rule: Difference
    """What the paper's own rule says of it: a difference in A over 0.02 is one (ScaleRL §4)."""
    efficiency: Efficiency
    """What the interval of compute_ratio says."""

    @property
    def asymptote(self) -> AsymptoteEstimate:
        """A with its interval as it may be shown."""
        return AsymptoteEstimate(A=self.A, lo=self.A_lo, hi=self.A_hi, rises=self.verdict != "no rise")

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, `asymptote` among it."""
        return {**asdict(self), "window": list(self.window), "asymptote": self.asymptote.to_json()}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The variants of a sweep, the reference among them, in the order in which they were given."""

    reference: str
    variants: tuple[VariantResult, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"reference": "scalerl", "variants": [{"curve": "scalerl", "A": 0.61, ...}, ...]}."""
        return {"reference": self.reference, "variants": [variant.to_json() for variant in self.variants]}


def compare(curves_by_variant: Mapping[str, Sequence[Fit]], costs: Mapping[str, float], reference: str) -> Comparison:
    """Compare every variant, one fit per seed, with the variant called `reference`; `costs` is in any one unit.

    Raises AblationsError when the reference, a fit or a cost is missing.
    """
    if reference not in curves_by_variant:
        raise AblationsError(f"reference {reference!r} has no fit; variants: {', '.join(curves_by_variant) or 'none'}")
    for name, fits in curves_by_variant.items():
        if not fits:
            raise AblationsError(f"variant {name!r} has no fit; a comparison needs at least one seed of each variant")
        if name not in costs:
            raise AblationsError(f"variant {name!r} has no cost; costs are given for: {', '.join(costs) or 'none'}")
    baseline = curves_by_variant[reference]
    return Comparison(
        reference=reference,
        variants=tuple(
            _variant_result(name, fits, baseline, cost=costs[name], is_reference=name == reference)
            for name, fits in curves_by_variant.items()
        ),
    )


def _variant_result(
    name: str, fits: Sequence[Fit], baseline: Sequence[Fit], *, cost: float, is_reference: bool
) -> VariantResult:
    ceiling = mean_ceiling(fits)
    assert ceiling.lo is not None  # every fit bounds A from below
    rises = all(fit.verdict != "no rise" for fit in fits)
    if is_reference:
        delta, rule = Interval(estimate=0.0, lo=0.0, hi=0.0), "the reference"
        ratio = mid_ratio = Interval(estimate=1.0, lo=1.0, hi=1.0)
    else:
        delta, rule = ceiling_difference(fits, baseline)
        ratio, mid_ratio = compute_ratio(fits, baseline), c_mid_ratio(fits, baseline)
    is_bounded = all(fit.A_hi is not None for fit in (*fits, *baseline))
    return VariantResult(
        curve=name,
        num_seeds=len(fits),
        A=ceiling.estimate,
        A_lo=ceiling.lo,
        A_hi=ceiling.hi,
        B=_geometric_mean([fit.B for fit in fits]) if rises else None,
        C_mid=_geometric_mean([fit.C_mid for fit in fits]) if rises else None,
        R_0=float(np.mean([fit.R_0 for fit in fits])),
        verdict=_verdict(fits, ceiling.lo, ceiling.hi),
        points=sum(fit.points for fit in fits),
        window=(min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)),
        cost=cost,
        delta_A=delta.estimate if is_reference or is_bounded else None,
        delta_A_lo=delta.lo,
        delta_A_hi=delta.hi,
        delta_rule=rule,
        compute_ratio=ratio and ratio.estimate,
        compute_ratio_lo=ratio and ratio.lo,
        compute_ratio_hi=ratio and ratio.hi,
        C_mid_ratio=mid_ratio and mid_ratio.estimate,
        C_mid_ratio_lo=mid_ratio and mid_ratio.lo,
        C_mid_ratio_hi=mid_ratio and mid_ratio.hi,
        difference="reference" if is_reference else ceiling_rule(delta),
        paper_rule="reference" if is_reference else paper_rule(delta.estimate if is_bounded else None),
        efficiency="reference" if is_reference else efficiency_rule(ratio),
    )


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def _verdict(fits: Sequence[Fit], ceiling_lo: float, ceiling_hi: float | None) -> Verdict:
    """The verdict on all seeds: what one of them did wrong, else what their common interval of A says."""
    verdicts = {fit.verdict for fit in fits}
    for verdict in ("collapsed", "no rise"):
        if verdict in verdicts:
            return verdict
    return verdict_on_interval(ceiling_lo, ceiling_hi)
