"""Every variant against the reference: level at equal compute, ceiling, compute to a target; a verdict on each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from ablations.errors import AblationsError
from ablations.fit.asymptote import DOUBTED, AsymptoteEstimate, Verdict, verdict_on_interval
from ablations.fit.result import Fit
from ablations.verdict.differences import (
    ceiling_difference,
    ceiling_repeats,
    common_target,
    compute_ratio,
    mean_ceiling,
    mean_ceiling_under_eq1,
    target_repeats,
)
from ablations.verdict.interval import JointInterval
from ablations.verdict.level import common_compute, level_difference, level_repeats, levels_of
from ablations.verdict.rules import (
    DECIDED,
    Difference,
    Efficiency,
    LevelDifference,
    ceiling_rule,
    efficiency_rule,
    level_rule,
    paper_rule,
)
from ablations.verdict.run_to_run import NO_OTHERS, OtherSweeps, RunToRun, run_to_run


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant against the reference. None stands for a number that the runs do not bound or do not give.

    VariantResult(curve="loo-loss", num_seeds=1, A=0.552, A_lo=0.540, A_hi=0.566, A_eq1=0.552,
                  A_eq1_lo=0.543, A_eq1_hi=0.561, eq1_p=0.41, B=1.8, C_mid=2600.0, R_0=0.31,
                  verdict="resolved", points=31, window=(1704.0, 7881.0), cost=8000.0, level=0.541,
                  delta_level=-0.049, delta_level_lo=-0.071, delta_level_hi=-0.027, delta_A=-0.058, delta_A_lo=-0.087,
                  delta_A_hi=-0.029, compute_ratio=1.2, compute_ratio_lo=1.0, compute_ratio_hi=1.4,
                  level_difference="level down", difference="ceiling down", paper_rule="ceiling down",
                  efficiency="no difference seen", delta_level_joint_lo=-0.080, delta_level_joint_hi=-0.018,
                  delta_A_joint_lo=-0.099, delta_A_joint_hi=-0.017, compute_ratio_joint_lo=0.9,
                  compute_ratio_joint_hi=1.5, level_difference_joint="level down", difference_joint="ceiling down",
                  efficiency_joint="cannot tell")
    """

    curve: str
    num_seeds: int
    A: float
    """Mean over seeds, averaged over the families that fit; show `asymptote`, as it means nothing without A_hi."""
    A_lo: float
    A_hi: float | None
    A_eq1: float
    """The same if eq. 1 is the law, and its interval."""
    A_eq1_lo: float
    A_eq1_hi: float | None
    eq1_p: float
    """p-value of the test whether eq. 1 fits, over all seeds (Fisher's method); under 0.05 it is doubted."""
    B: float | None
    """Geometric mean over seeds, like C_mid; None for a curve that does not rise."""
    C_mid: float | None
    R_0: float
    verdict: Verdict
    points: int
    """Readings fitted, over all seeds."""
    window: tuple[float, float]
    cost: float
    level: float | None
    """Pass rate over the last third of the compute that the variant and the reference have spent, mean over seeds."""
    delta_level: float | None
    """Level less the reference's at the same compute; None where readings begin too late, like its interval."""
    delta_level_lo: float | None
    delta_level_hi: float | None
    delta_A: float | None
    """A less the reference's A."""
    delta_A_lo: float | None
    delta_A_hi: float | None
    compute_ratio: float | None
    """Compute that the variant needs to reach the target, over what the reference needs; under 1 is faster."""
    compute_ratio_lo: float | None
    compute_ratio_hi: float | None
    level_difference: LevelDifference
    """What the interval of delta_level says."""
    difference: Difference
    """What the interval of delta_A says of the ceiling."""
    paper_rule: Difference
    """What the paper's own rule says of it: a difference in A over 0.02 is one (ScaleRL §4)."""
    efficiency: Efficiency
    """What the interval of compute_ratio says."""
    delta_level_joint_lo: float | None
    """Ends of the intervals that hold for all variants at once, corrected for so many comparisons (Bonferroni)."""
    delta_level_joint_hi: float | None
    delta_A_joint_lo: float | None
    delta_A_joint_hi: float | None
    compute_ratio_joint_lo: float | None
    compute_ratio_joint_hi: float | None
    level_difference_joint: LevelDifference
    """What the corrected interval of delta_level says."""
    difference_joint: Difference
    """What the corrected interval of delta_A says."""
    efficiency_joint: Efficiency
    """What the corrected interval of compute_ratio says."""

    @property
    def asymptote(self) -> AsymptoteEstimate:
        """A with its interval as it may be shown."""
        return AsymptoteEstimate(A=self.A, lo=self.A_lo, hi=self.A_hi, rises=self.verdict != "no rise")

    @property
    def held(self) -> frozenset[str]:
        """The verdicts that say "differs" and still do for all variants at once: of level, ceiling and efficiency."""
        said = {
            "level": (self.level_difference, self.level_difference_joint),
            "ceiling": (self.difference, self.difference_joint),
            "efficiency": (self.efficiency, self.efficiency_joint),
        }
        return frozenset(name for name, (plain, joint) in said.items() if plain == joint and plain in DECIDED)

    @property
    def doubts_eq1(self) -> bool:
        """Whether the residuals of its seeds speak against eq. 1."""
        return self.verdict != "no rise" and self.eq1_p < DOUBTED

    @property
    def asymptote_under_eq1(self) -> AsymptoteEstimate:
        """A with the interval that holds if eq. 1 is the law."""
        return AsymptoteEstimate(A=self.A_eq1, lo=self.A_eq1_lo, hi=self.A_eq1_hi, rises=self.verdict != "no rise")

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, `asymptote` among it."""
        return {
            **asdict(self),
            "window": list(self.window),
            "asymptote": self.asymptote.to_json(),
            "asymptote_under_eq1": self.asymptote_under_eq1.to_json(),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Spreads:
    """How far runs of one recipe lie apart, in pass rate: in their level, in A, and where they pass the target."""

    level: RunToRun
    ceiling: RunToRun
    target: RunToRun

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"level": {"sd": 0.0098, "degrees_of_freedom": 12}, "ceiling": ..., "target": ...}."""
        return {name: getattr(self, name).to_json() for name in ("level", "ceiling", "target")}


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The variants of a sweep, the reference among them, in the order in which they were given."""

    reference: str
    variants: tuple[VariantResult, ...]
    spreads: Spreads
    others: OtherSweeps = NO_OTHERS
    """What runs of other sweeps have said of the spreads."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"reference": "scalerl", "variants": [{"curve": "scalerl", "A": 0.61, ...}, ...], ...}.

        "run_to_run" has the standard deviations between runs of one recipe that the intervals hold.
        """
        variants = [variant.to_json() for variant in self.variants]
        return {"reference": self.reference, "variants": variants, "run_to_run": self.run_to_run_json()}

    def run_to_run_json(self) -> dict[str, Any]:
        """How far runs of one recipe lie apart, and which other sweeps have said so: plain data for JSON."""
        others = {"other_sweeps": list(self.others.sweeps), "left_out": list(self.others.left_out)}
        return self.spreads.to_json() | others


def compare(
    curves_by_variant: Mapping[str, Sequence[Fit]],
    costs: Mapping[str, float],
    reference: str,
    others: OtherSweeps = NO_OTHERS,
) -> Comparison:
    """Compare every variant, one fit per seed, with the variant called `reference`; `costs` is in any one unit.

    `others` says how far runs of one recipe lie apart in other sweeps of the scale; it counts where the seeds are few.

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
    spreads = _spreads(curves_by_variant, baseline, others)
    return Comparison(
        reference=reference,
        variants=tuple(
            _variant_result(
                name,
                fits,
                baseline,
                spreads,
                cost=costs[name],
                is_reference=name == reference,
                comparisons=max(len(curves_by_variant) - 1, 1),
            )
            for name, fits in curves_by_variant.items()
        ),
        spreads=spreads,
        others=others,
    )


def _spreads(curves_by_variant: Mapping[str, Sequence[Fit]], baseline: Sequence[Fit], others: OtherSweeps) -> Spreads:
    """From the seeds of every variant, each at the compute and the target at which it is compared."""
    repeated = [fits for fits in curves_by_variant.values() if len(fits) > 1]
    levels = (levels_of(fits, common_compute([*fits, *baseline])) for fits in repeated)
    targets = ((fits, common_target([*fits, *baseline])) for fits in repeated)
    return Spreads(
        level=run_to_run([level_repeats(of_variant) for of_variant in levels if of_variant], others.level),
        ceiling=run_to_run([ceiling_repeats(fits) for fits in repeated], others.ceiling),
        target=run_to_run(
            [target_repeats(fits, target) for fits, target in targets if target is not None], others.target
        ),
    )


def _variant_result(
    name: str,
    fits: Sequence[Fit],
    baseline: Sequence[Fit],
    spreads: Spreads,
    *,
    cost: float,
    is_reference: bool,
    comparisons: int,
) -> VariantResult:
    ceiling, under_eq1 = mean_ceiling(fits, spreads.ceiling), mean_ceiling_under_eq1(fits, spreads.ceiling)
    assert ceiling.lo is not None  # every fit bounds A from below
    assert under_eq1.lo is not None
    rises = all(fit.verdict != "no rise" for fit in fits)
    compute = common_compute([*fits, *baseline])
    levels, baseline_levels = levels_of(fits, compute), levels_of(baseline, compute)
    level: JointInterval | None = None
    if is_reference:
        delta, ratio = _exactly(0.0), _exactly(1.0)
        level = delta if levels else None
    else:
        delta = ceiling_difference(fits, baseline, spreads.ceiling, comparisons=comparisons)
        ratio = compute_ratio(fits, baseline, spreads.target, comparisons=comparisons)
        if levels and baseline_levels:
            level = level_difference(levels, baseline_levels, spreads.level, comparisons=comparisons)
    is_bounded = all(fit.ceiling.hi is not None for fit in (*fits, *baseline))
    by_the_paper = None
    if all(fit.A_hi is not None for fit in (*fits, *baseline)):
        by_the_paper = under_eq1.estimate - mean_ceiling_under_eq1(baseline).estimate
    return VariantResult(
        curve=name,
        num_seeds=len(fits),
        A=ceiling.estimate,
        A_lo=ceiling.lo,
        A_hi=ceiling.hi,
        A_eq1=under_eq1.estimate,
        A_eq1_lo=under_eq1.lo,
        A_eq1_hi=under_eq1.hi,
        eq1_p=fishers_p([fit.eq1_p for fit in fits]),
        B=_geometric_mean([fit.B for fit in fits]) if rises else None,
        C_mid=_geometric_mean([fit.C_mid for fit in fits]) if rises else None,
        R_0=float(np.mean([fit.R_0 for fit in fits])),
        verdict=_verdict(fits, ceiling.lo, ceiling.hi),
        points=sum(fit.points for fit in fits),
        window=(min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)),
        cost=cost,
        level=float(np.mean([one.value for one in levels])) if levels else None,
        delta_level=level and level.estimate,
        delta_level_lo=level and level.lo,
        delta_level_hi=level and level.hi,
        delta_A=delta.estimate if is_reference or is_bounded else None,
        delta_A_lo=delta.lo,
        delta_A_hi=delta.hi,
        compute_ratio=ratio and ratio.estimate,
        compute_ratio_lo=ratio and ratio.lo,
        compute_ratio_hi=ratio and ratio.hi,
        level_difference="reference" if is_reference else level_rule(level),
        difference="reference" if is_reference else ceiling_rule(delta),
        paper_rule="reference" if is_reference else paper_rule(by_the_paper),
        efficiency="reference" if is_reference else efficiency_rule(ratio),
        delta_level_joint_lo=level and level.joint_lo,
        delta_level_joint_hi=level and level.joint_hi,
        delta_A_joint_lo=delta.joint_lo,
        delta_A_joint_hi=delta.joint_hi,
        compute_ratio_joint_lo=ratio and ratio.joint_lo,
        compute_ratio_joint_hi=ratio and ratio.joint_hi,
        level_difference_joint="reference" if is_reference else level_rule(level and level.joint),
        difference_joint="reference" if is_reference else ceiling_rule(delta.joint),
        efficiency_joint="reference" if is_reference else efficiency_rule(ratio and ratio.joint),
    )


def _exactly(value: float) -> JointInterval:
    """Of the reference, which is compared with itself."""
    return JointInterval(estimate=value, lo=value, hi=value, joint_lo=value, joint_hi=value)


def fishers_p(p_values: Sequence[float]) -> float:
    """One p-value of m independent ones: P(chi-squared with 2 m degrees of freedom > -2 sum ln p) (Fisher 1925)."""
    return float(chdtrc(2 * len(p_values), -2 * float(np.sum(np.log(p_values)))))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def _verdict(fits: Sequence[Fit], ceiling_lo: float, ceiling_hi: float | None) -> Verdict:
    """The verdict on all seeds: what one of them did wrong, else what their common interval of A says."""
    verdicts = {fit.verdict for fit in fits}
    for verdict in ("collapsed", "no rise"):
        if verdict in verdicts:
            return verdict
    return verdict_on_interval(ceiling_lo, ceiling_hi)
