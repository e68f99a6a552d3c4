"""Every variant against the reference: difference in A with its interval, compute to a common target, a verdict.

The difference of two asymptotes is uncertain for two reasons: each fit is, and two runs of one recipe differ. With
three seeds a side, Welch's t on the per-seed A holds both. With fewer, the spread of two numbers says too little: the
fits' intervals are combined, and the run-to-run sd is assumed to be TAU.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

from ablations.errors import AblationsError
from ablations.fit import Fit, Verdict, asymptote_text, ceiling_verdict

Difference = Literal["reference", "ceiling up", "ceiling down", "no difference seen", "cannot tell"]
Efficiency = Literal["reference", "less compute", "more compute", "no difference seen", "cannot tell"]

TAU = 0.0075
"""Assumed sd of A between runs of one recipe: half the +-0.015 within which three ScaleRL runs lay (ScaleRL §4)."""
NORMAL_QUANTILE = 1.96
MIN_SEEDS_FOR_WELCH = 3
WIDEST_MARGIN = 0.04
"""Over this half-width an interval around 0 says nothing: two resolved fits of one seed each give 0.035."""
WIDEST_RATIO = 1.5
"""An interval of the compute ratio that holds 1 and spans more than this factor says nothing."""
TARGET_SHARE = 0.8

WELCH = "Welch's t on the A of each seed"
ASSUMED = f"fit intervals and an assumed run-to-run sd of A of {TAU}"


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant against the reference. None stands for a number that the runs do not bound or do not give.

    VariantResult(curve="loss=dapo", num_seeds=1, A=0.552, A_lo=0.540, A_hi=0.566, B=1.8, C_mid=2600.0, R_0=0.31,
                  verdict="resolved", points=31, window=(1704.0, 7881.0), cost=8000.0, delta_A=-0.058,
                  delta_A_lo=-0.087, delta_A_hi=-0.029, delta_rule="fit intervals and an assumed ...",
                  compute_ratio=1.2, compute_ratio_lo=1.0, compute_ratio_hi=1.4, difference="ceiling down",
                  efficiency="no difference seen")
    """

    curve: str
    num_seeds: int
    A: float
    """Mean over seeds; without A_hi show `asymptote_text()` and not this number."""
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
    """The fits' uncertainty only: how much this ratio varies from run to run is not in the interval."""
    difference: Difference
    """What the interval of delta_A says of the ceiling."""
    efficiency: Efficiency
    """What the interval of compute_ratio says."""

    def asymptote_text(self) -> str:
        """A with its interval as it may be shown; see `Fit.asymptote_text`."""
        return "no rise" if self.verdict == "no rise" else asymptote_text(self.A, self.A_lo, self.A_hi)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, `asymptote_text()` among it."""
        return {**asdict(self), "window": list(self.window), "asymptote": self.asymptote_text()}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The variants of a sweep, the reference among them, in the order in which they were given."""

    reference: str
    variants: tuple[VariantResult, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"reference": "scalerl", "variants": [{"curve": "scalerl", "A": 0.61, ...}, ...]}."""
        return {"reference": self.reference, "variants": [variant.to_json() for variant in self.variants]}


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval; an end that is None is not bounded.

    Interval(estimate=0.61, lo=0.59, hi=None)
    """

    estimate: float
    lo: float | None
    hi: float | None

    @property
    def below(self) -> float:
        """Distance from the lower end to the estimate."""
        return math.inf if self.lo is None else self.estimate - self.lo

    @property
    def above(self) -> float:
        return math.inf if self.hi is None else self.hi - self.estimate


def compare(curves_by_variant: Mapping[str, Sequence[Fit]], costs: Mapping[str, float], reference: str) -> Comparison:
    """Compare every variant, one fit a seed, with the variant called `reference`; `costs` is in any one unit.

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
    rises = all(fit.verdict != "no rise" for fit in fits)
    if is_reference:
        delta, rule, ratio = (
            Interval(estimate=0.0, lo=0.0, hi=0.0),
            "the reference",
            Interval(estimate=1.0, lo=1.0, hi=1.0),
        )
    else:
        delta, rule = ceiling_difference(fits, baseline)
        ratio = compute_ratio(fits, baseline)
    is_bounded = all(fit.A_hi is not None for fit in (*fits, *baseline))
    return VariantResult(
        curve=name,
        num_seeds=len(fits),
        A=ceiling.estimate,
        A_lo=ceiling.estimate - ceiling.below,
        A_hi=ceiling.hi,
        B=_geometric_mean([fit.B for fit in fits]) if rises else None,
        C_mid=_geometric_mean([fit.C_mid for fit in fits]) if rises else None,
        R_0=float(np.mean([fit.R_0 for fit in fits])),
        verdict=_verdict(fits, ceiling),
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
        difference="reference" if is_reference else difference_in_words(delta),
        efficiency="reference" if is_reference else efficiency_in_words(ratio),
    )


def mean_ceiling(fits: Sequence[Fit]) -> Interval:
    """Mean A over seeds: Student's t on the per-seed A from three bounded seeds on, else the fits' own intervals."""
    if _suit_welch(fits):
        A = np.array([fit.A for fit in fits])
        margin = float(stdtrit(A.size - 1, 0.975) * A.std(ddof=1) / math.sqrt(A.size))
        return Interval(estimate=float(A.mean()), lo=float(A.mean()) - margin, hi=float(A.mean()) + margin)
    return _mean([Interval(estimate=fit.A, lo=fit.A_lo, hi=fit.A_hi) for fit in fits])


def ceiling_difference(fits: Sequence[Fit], baseline: Sequence[Fit]) -> tuple[Interval, str]:
    """A of `fits` less A of `baseline`, and the rule behind its interval.

    Welch's t where both sides have three seeds with a bounded A. Otherwise, one or two seeds included, the intervals of
    the mean A are combined with the run-to-run variance TAU^2 (1 / m + 1 / n), see `_minus`, `_ceiling`.
    """
    if _suit_welch(fits) and _suit_welch(baseline):
        return _welch(np.array([fit.A for fit in fits]), np.array([fit.A for fit in baseline])), WELCH
    run_margin = NORMAL_QUANTILE * TAU * math.sqrt(1 / len(fits) + 1 / len(baseline))
    sides = ([_ceiling(fit) for fit in side] for side in (fits, baseline))
    return _minus(*map(_mean, sides), extra_margin=run_margin), ASSUMED


def _ceiling(fit: Fit) -> Interval:
    """A for a comparison. What an unbounded fit says of A beyond its readings rests on the law alone: only the level
    that it has reached counts as its lower end.
    """
    reached = float(fit.predict(fit.window[1])[0])
    return Interval(estimate=fit.A, lo=fit.A_lo if fit.A_hi is not None else min(fit.A_lo, reached), hi=fit.A_hi)


def difference_in_words(delta: Interval) -> Difference:
    """What an interval of the difference in A says; an unbounded or a very wide one around 0 says nothing."""
    if delta.lo is not None and delta.lo > 0:
        return "ceiling up"
    if delta.hi is not None and delta.hi < 0:
        return "ceiling down"
    if delta.lo is None or delta.hi is None or delta.hi - delta.lo > 2 * WIDEST_MARGIN:
        return "cannot tell"
    return "no difference seen"


def efficiency_in_words(ratio: Interval | None) -> Efficiency:
    """What an interval of the compute ratio says; one around 1 that is wide or has no end says nothing."""
    if ratio is None:
        return "cannot tell"
    if ratio.lo is not None and ratio.lo > 1:
        return "more compute"
    if ratio.hi is not None and ratio.hi < 1:
        return "less compute"
    if ratio.lo is None or ratio.hi is None or ratio.hi > WIDEST_RATIO * ratio.lo:
        return "cannot tell"
    return "no difference seen"


def compute_ratio(fits: Sequence[Fit], baseline: Sequence[Fit]) -> Interval | None:
    """Compute that `fits` need to reach a common target over the compute that `baseline` needs.

    The target lies 80 % of the way from R_0 (mean over all the fits) to the lowest level that any of the fitted curves
    has at the end of its window. None where a curve does not rise to it within its window. Seeds count by geometric
    mean.
    """
    every = (*fits, *baseline)
    R_0 = float(np.mean([fit.R_0 for fit in every]))
    lowest = min(float(fit.predict(fit.window[1])[0]) for fit in every)
    if lowest <= R_0 or any(fit.verdict == "no rise" for fit in every):
        return None
    target = R_0 + TARGET_SHARE * (lowest - R_0)
    sides = []
    for side in (fits, baseline):
        needed = []
        for fit in side:
            estimate, lo, hi = fit.compute_to_reach(target)
            if estimate is None or not fit.window[0] <= estimate <= fit.window[1]:
                return None
            needed.append(
                Interval(estimate=math.log(estimate), lo=math.log(lo) if lo else None, hi=hi and math.log(hi))
            )
        sides.append(_mean(needed))
    log_ratio = _minus(*sides)
    lo, hi = (None if end is None else math.exp(end) for end in (log_ratio.lo, log_ratio.hi))
    return Interval(estimate=math.exp(log_ratio.estimate), lo=lo, hi=hi)


def _suit_welch(fits: Sequence[Fit]) -> bool:
    return len(fits) >= MIN_SEEDS_FOR_WELCH and all(fit.A_hi is not None for fit in fits)


def _welch(a: np.ndarray, b: np.ndarray) -> Interval:
    """Difference of means with unequal variances (Welch 1947): d +- t_nu sqrt(v_a + v_b), v = s^2 / n.

    nu = (v_a + v_b)^2 / (v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)).
    """
    difference = float(a.mean() - b.mean())
    v_a, v_b = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    if v_a + v_b == 0:
        return Interval(estimate=difference, lo=difference, hi=difference)
    nu = (v_a + v_b) ** 2 / (v_a**2 / (a.size - 1) + v_b**2 / (b.size - 1))
    margin = float(stdtrit(nu, 0.975) * math.sqrt(v_a + v_b))
    return Interval(estimate=difference, lo=difference - margin, hi=difference + margin)


def _mean(intervals: Sequence[Interval]) -> Interval:
    """The mean of independent estimates, margins added in squares."""
    estimate = float(np.mean([interval.estimate for interval in intervals]))
    below = math.hypot(*(interval.below for interval in intervals)) / len(intervals)
    above = math.hypot(*(interval.above for interval in intervals)) / len(intervals)
    return _interval(estimate, below, above)


def _minus(a: Interval, b: Interval, *, extra_margin: float = 0.0) -> Interval:
    """a - b with the margins of independent, skewed intervals added in squares (Zou and Donner 2008)."""
    below, above = math.hypot(a.below, b.above, extra_margin), math.hypot(a.above, b.below, extra_margin)
    return _interval(a.estimate - b.estimate, below, above)


def _interval(estimate: float, below: float, above: float) -> Interval:
    return Interval(
        estimate=estimate,
        lo=estimate - below if math.isfinite(below) else None,
        hi=estimate + above if math.isfinite(above) else None,
    )


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def _verdict(fits: Sequence[Fit], ceiling: Interval) -> Verdict:
    """The verdict on all seeds: what one of them did wrong, else what their common interval of A says."""
    verdicts = {fit.verdict for fit in fits}
    for verdict in ("collapsed", "no rise"):
        if verdict in verdicts:
            return verdict
    return ceiling_verdict(ceiling.estimate - ceiling.below, ceiling.hi)
