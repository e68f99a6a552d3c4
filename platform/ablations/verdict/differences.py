"""What a variant's fits differ by from the reference's: ceilings, and the compute that a common target takes.

The difference of two asymptotes is uncertain for two reasons: each fit is, and two runs of one recipe differ. With
three seeds a side, Welch's t on the per-seed A holds both. With fewer, the spread of two numbers says too little: the
posterior draws of the fits are subtracted, and the run-to-run sd is assumed to be TAU.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from ablations.fit.result import Fit
from ablations.verdict.interval import Interval, interval_of, welch_interval

TAU = 0.0075
"""Assumed sd of A between runs of one recipe: half the +-0.015 within which three ScaleRL runs lay (ScaleRL §4)."""
MIN_SEEDS_FOR_WELCH = 3
TARGET_SHARE = 0.8
Sided = tuple[float, np.ndarray]
"""An estimate and its draws."""

WELCH = "Welch's t on the A of each seed"
ASSUMED = f"posteriors of the fits and an assumed run-to-run sd of A of {TAU}"


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
        return welch_interval(np.array([fit.A for fit in fits]), np.array([fit.A for fit in baseline])), WELCH
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
        in_logs = welch_interval(logs, baseline_logs)
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


def _is_bounded(fits: Sequence[Fit]) -> bool:
    return all(fit.A_hi is not None for fit in fits)


def _at_least(fit: Fit) -> np.ndarray:
    """Draws of A for the lower end of a comparison: of an unbounded fit, the level at the end of its readings."""
    return fit.draws.A if fit.A_hi is not None else fit.predict_draws(fit.window[1])[:, 0]
