"""Every variant against the reference: difference in A with its interval, compute to a common target, a verdict.

The difference of two asymptotes is uncertain for two reasons: each fit is, and two runs of one recipe differ. With
three seeds a side, Welch's t on the per-seed A holds both. With fewer, the spread of two numbers says too little: the
posterior draws of the fits are subtracted, and the run-to-run sd is assumed to be TAU.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from ablations.errors import AblationsError
from ablations.fit.asymptote import Asymptote, Verdict, verdict_on_interval
from ablations.fit.result import Fit

Difference = Literal["reference", "ceiling up", "ceiling down", "no difference seen", "cannot tell"]
Efficiency = Literal["reference", "less compute", "more compute", "no difference seen", "cannot tell"]

TAU = 0.0075
"""Assumed sd of A between runs of one recipe: half the +-0.015 within which three ScaleRL runs lay (ScaleRL §4)."""
PAPER_MARGIN = 0.02
"""What the paper takes for the error of A (ScaleRL §4)."""
TAILS = (0.025, 0.975)
MIN_SEEDS_FOR_WELCH = 3
WIDEST_MARGIN = 0.04
"""Over this half-width an interval around 0 says nothing: two resolved fits of one seed each give 0.035."""
WIDEST_RATIO = 1.5
"""An interval of the compute ratio that holds 1 and spans more than this factor says nothing."""
TARGET_SHARE = 0.8
Sided = tuple[float, np.ndarray]
"""An estimate and its draws."""

WELCH = "Welch's t on the A of each seed"
ASSUMED = f"posteriors of the fits and an assumed run-to-run sd of A of {TAU}"


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
    def asymptote(self) -> Asymptote:
        """A with its interval as it may be shown."""
        return Asymptote(A=self.A, lo=self.A_lo, hi=self.A_hi, rises=self.verdict != "no rise")

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


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval; an end that is None is not bounded.

    Interval(estimate=0.61, lo=0.59, hi=None)
    """

    estimate: float
    lo: float | None
    hi: float | None


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
        difference="reference" if is_reference else difference_in_words(delta),
        paper_rule="reference" if is_reference else paper_rule(delta.estimate if is_bounded else None),
        efficiency="reference" if is_reference else efficiency_in_words(ratio),
    )


def mean_ceiling(fits: Sequence[Fit]) -> Interval:
    """Mean A over seeds: Student's t on the per-seed A from three bounded seeds on, else the fits' posteriors."""
    estimate = float(np.mean([fit.A for fit in fits]))
    if _suit_welch(fits):
        A = np.array([fit.A for fit in fits])
        margin = float(stdtrit(A.size - 1, 0.975) * A.std(ddof=1) / math.sqrt(A.size))
        return Interval(estimate=estimate, lo=max(0.0, estimate - margin), hi=min(1.0, estimate + margin))
    if len(fits) == 1:
        return Interval(estimate=estimate, lo=fits[0].A_lo, hi=fits[0].A_hi)
    if not _is_bounded(fits):
        # The lower bound of an open fit is less than its posterior says, see `ablations.fit`: the mean of them holds.
        return Interval(estimate=estimate, lo=float(np.mean([fit.A_lo for fit in fits])), hi=None)
    return interval_of(estimate, np.mean([fit.draws.A for fit in fits], axis=0))


def ceiling_difference(fits: Sequence[Fit], baseline: Sequence[Fit]) -> tuple[Interval, str]:
    """A of `fits` less A of `baseline`, and the rule behind its interval.

    Welch's t where both sides have three seeds with a bounded A. Otherwise, one or two seeds included, the difference
    of the posterior draws of the mean A, with an assumed run-to-run variance of TAU^2 (1 / m + 1 / n). What an
    unbounded fit says of A beyond its readings rests on the law alone: only the level that it has reached counts as its
    lower end.
    """
    if _suit_welch(fits) and _suit_welch(baseline):
        return _welch(np.array([fit.A for fit in fits]), np.array([fit.A for fit in baseline])), WELCH
    estimate = float(np.mean([fit.A for fit in fits]) - np.mean([fit.A for fit in baseline]))
    lower, upper = (
        np.mean([_at_least(fit) for fit in a], axis=0)
        - np.mean([fit.draws.A for fit in b], axis=0)
        + run_to_run(len(fits), len(baseline), a[0].draws.A.size)
        for a, b in ((fits, baseline), (baseline, fits))
    )
    lo = interval_of(estimate, lower, has_lo=_is_bounded(baseline)).lo
    hi = interval_of(-estimate, upper, has_lo=_is_bounded(fits)).lo
    return Interval(estimate=estimate, lo=lo, hi=None if hi is None else -hi), ASSUMED


def run_to_run(num_seeds: int, num_baseline_seeds: int, num_draws: int) -> np.ndarray:
    """Draws of what two means differ by because runs of one recipe do: N(0, TAU^2 (1 / m + 1 / n))."""
    return math.sqrt(1 / num_seeds + 1 / num_baseline_seeds) * own_ceilings(num_draws, 0)


def own_ceilings(num_draws: int, seed: int) -> np.ndarray:
    """Draws of how far the ceiling of one run lies off its recipe's, N(0, TAU^2): evenly spread, shuffled by `seed`."""
    quantiles = (np.arange(num_draws) + 0.5) / num_draws
    return TAU * np.random.default_rng(seed).permutation(ndtri(quantiles))


def interval_of(estimate: float, draws: np.ndarray, *, has_lo: bool = True, has_hi: bool = True) -> Interval:
    """The 95 % interval of draws; an end that is infinite or that nothing bounds is None."""
    lo, hi = np.quantile(draws, TAILS, method="closest_observation")
    return Interval(
        estimate=estimate,
        lo=float(lo) if has_lo and math.isfinite(lo) else None,
        hi=float(hi) if has_hi and math.isfinite(hi) else None,
    )


def _is_bounded(fits: Sequence[Fit]) -> bool:
    return all(fit.A_hi is not None for fit in fits)


def _at_least(fit: Fit) -> np.ndarray:
    """Draws of A for the lower end of a comparison: of an unbounded fit, the level at the end of its readings."""
    return fit.draws.A if fit.A_hi is not None else fit.predict_draws(fit.window[1])[:, 0]


def difference_in_words(delta: Interval) -> Difference:
    """What an interval of the difference in A says; an unbounded or a very wide one around 0 says nothing."""
    if delta.lo is not None and delta.lo > 0:
        return "ceiling up"
    if delta.hi is not None and delta.hi < 0:
        return "ceiling down"
    if delta.lo is None or delta.hi is None or delta.hi - delta.lo > 2 * WIDEST_MARGIN:
        return "cannot tell"
    return "no difference seen"


def paper_rule(delta: float | None) -> Difference:
    """The paper's rule on a difference in A: within 0.02 there is none (ScaleRL §4, A.5); None where an A is open."""
    if delta is None:
        return "cannot tell"
    if abs(delta) <= PAPER_MARGIN:
        return "no difference seen"
    return "ceiling up" if delta > 0 else "ceiling down"


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
    mean. The interval is Welch's on the logs of each seed's where that of the difference in A is Welch's; else it
    comes from the posteriors, the ceiling of each run being off by an assumed TAU.
    """
    every = (*fits, *baseline)
    R_0 = float(np.mean([fit.R_0 for fit in every]))
    lowest = min(float(fit.predict(fit.window[1])[0]) for fit in every)
    if lowest <= R_0 or any(fit.verdict == "no rise" for fit in every):
        return None
    target = R_0 + TARGET_SHARE * (lowest - R_0)
    sides: list[list[Sided]] = []
    for number, side in enumerate((fits, baseline)):
        needed = [(fit.compute_to_reach(target)[0], fit) for fit in side]
        inside = [
            (C, fit.compute_draws(target, ceiling_shift=own_ceilings(fit.draws.A.size, 2 * seed + number)))
            for seed, (C, fit) in enumerate(needed)
            if C and fit.window[0] <= C <= fit.window[1]
        ]
        if len(inside) < len(needed):
            return None
        sides.append(inside)
    return _geometric_ratio(*sides, by_seeds=_suit_welch(fits) and _suit_welch(baseline))


def c_mid_ratio(fits: Sequence[Fit], baseline: Sequence[Fit]) -> Interval | None:
    """C_mid of `fits` over that of `baseline`, seeds by geometric mean; None where a curve does not rise."""
    if any(fit.verdict == "no rise" for fit in (*fits, *baseline)):
        return None
    sides = ([(fit.C_mid, fit.draws.C_mid) for fit in side] for side in (fits, baseline))
    return _geometric_ratio(*sides, by_seeds=_suit_welch(fits) and _suit_welch(baseline))


def _geometric_ratio(top: Sequence[Sided], bottom: Sequence[Sided], *, by_seeds: bool) -> Interval:
    """Ratio of geometric means of (estimate, draws); its interval is Welch's t on the logs of the estimates, or comes
    from the draws.
    """
    logs, baseline_logs = (np.log([estimate for estimate, _ in side]) for side in (top, bottom))
    if by_seeds:
        in_logs = _welch(logs, baseline_logs)
    else:
        in_logs = _log_ratio_interval(float(logs.mean() - baseline_logs.mean()), top, bottom)
    lo, hi = (None if end is None else math.exp(end) for end in (in_logs.lo, in_logs.hi))
    return Interval(estimate=math.exp(in_logs.estimate), lo=lo, hi=hi)


def _log_ratio_interval(estimate: float, top: Sequence[Sided], bottom: Sequence[Sided]) -> Interval:
    """The interval of the draws' log ratio. A curve that never reaches the target needs infinite compute, one that
    starts above it none; where both sides say so the ratio may be anything, and counts against either end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [np.mean([np.log(draws) for _, draws in side], axis=0) for side in (top, bottom)]
        draws = sides[0] - sides[1]
    is_anything = np.isnan(draws)
    lo = interval_of(estimate, np.where(is_anything, -np.inf, draws)).lo
    return Interval(estimate=estimate, lo=lo, hi=interval_of(estimate, np.where(is_anything, np.inf, draws)).hi)


def _suit_welch(fits: Sequence[Fit]) -> bool:
    return len(fits) >= MIN_SEEDS_FOR_WELCH and all(fit.A_hi is not None for fit in fits)


def _welch(a: np.ndarray, b: np.ndarray) -> Interval:
    """Difference of means with unequal variances (Welch 1947): d +- t_nu sqrt(v_a + v_b), v = s^2 / n.

    nu = (v_a + v_b)^2 / (v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)). `scipy.stats.ttest_ind` gives the same,
    but NaN for equal seeds, and its import takes longer than all others of a comparison together.
    """
    difference = float(a.mean() - b.mean())
    v_a, v_b = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    if v_a + v_b == 0:
        return Interval(estimate=difference, lo=difference, hi=difference)
    nu = (v_a + v_b) ** 2 / (v_a**2 / (a.size - 1) + v_b**2 / (b.size - 1))
    margin = float(stdtrit(nu, 0.975) * math.sqrt(v_a + v_b))
    return Interval(estimate=difference, lo=difference - margin, hi=difference + margin)


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def _verdict(fits: Sequence[Fit], ceiling_lo: float, ceiling_hi: float | None) -> Verdict:
    """The verdict on all seeds: what one of them did wrong, else what their common interval of A says."""
    verdicts = {fit.verdict for fit in fits}
    for verdict in ("collapsed", "no rise"):
        if verdict in verdicts:
            return verdict
    return verdict_on_interval(ceiling_lo, ceiling_hi)
