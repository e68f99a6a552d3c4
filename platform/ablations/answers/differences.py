"""Differences between the fits of a variant and of the reference: in ceiling, and in compute to a common target.

A difference is uncertain for three reasons: each fit is uncertain, the law of the curves beyond the readings is
unknown, and two runs of one recipe differ. Draws from the fits' posteriors cover the first. Draws of a ceiling cover
the second too: draw i of all fits of a difference comes from one family (`one_law`), so doubt that all seeds share does
not average out. The third is one standard deviation for all variants of a sweep, smaller between runs with the same
start (`run_to_run`). Compute to a target within the readings comes from eq. 1, since the families that fit agree there.
"""

import math
from collections.abc import Sequence

import numpy as np

from ablations.answers.interval import Interval, JointInterval, interval_of
from ablations.answers.one_law import ceilings_under_one_law
from ablations.answers.run_to_run import Repeats, RunToRun, run_to_run
from ablations.fit.ceiling import EQ1_LEADS
from ablations.fit.result import Fit

TARGET_SHARE = 0.8
Sided = tuple[float, np.ndarray]
"""An estimate and its draws."""


def starts_of(fits: Sequence[Fit]) -> list[str]:
    """The start of each run."""
    return [fit.curve.start for fit in fits]


def ceiling_repeats(fits: Sequence[Fit]) -> Repeats:
    """Evidence on the run-to-run spread of ceilings from a variant's seeds; empty if a seed has no upper end.

    All ceilings are taken under eq. 1, since another law moves those of all seeds alike.
    """
    if not all(fit.A_hi is not None for fit in fits):
        return Repeats(squares=0.0, freedom=0, own_variance=0.0)
    return Repeats.of([fit.A for fit in fits], [float(fit.draws.A.var()) for fit in fits], starts_of(fits))


def mean_ceiling(fits: Sequence[Fit], spread: RunToRun | None = None) -> Interval:
    """Mean A over seeds. One seed has the interval of its fit; several seeds include the run-to-run `spread`, by
    default from these seeds alone.
    """
    if len(fits) == 1:
        ceiling = fits[0].ceiling
        return Interval(estimate=ceiling.A, lo=ceiling.lo, hi=ceiling.hi)
    estimate = _estimated(fits)
    if not _is_bounded(fits):
        # The lower bound of an open fit lies below its posterior's (see `ablations.fit`), so the mean uses these
        # bounds.
        lo = float(np.mean([fit.ceiling.lo for fit in fits]))
        return Interval(estimate=estimate, lo=min(lo, estimate), hi=None)
    return _with_spread(estimate, fits, [fit.ceiling.draws for fit in fits], spread)


def mean_ceiling_under_eq1(fits: Sequence[Fit], spread: RunToRun | None = None) -> Interval:
    """Mean A over seeds if eq. 1 is the law; otherwise like `mean_ceiling`."""
    estimate = float(np.mean([fit.A for fit in fits]))
    if len(fits) == 1:
        return Interval(estimate=estimate, lo=fits[0].A_lo, hi=fits[0].A_hi)
    if any(fit.A_hi is None for fit in fits):
        return Interval(estimate=estimate, lo=float(np.mean([fit.A_lo for fit in fits])), hi=None)
    return _with_spread(estimate, fits, [fit.draws.A for fit in fits], spread)


def ceiling_difference(
    fits: Sequence[Fit], baseline: Sequence[Fit], spread: RunToRun, *, comparisons: int = 1
) -> JointInterval:
    """A of `fits` minus A of `baseline`; `spread` is the run-to-run spread of A.

    The estimate comes from eq. 1 if eq. 1 gives both ceilings, else from the median over all families, weighted alike
    for all runs. Beyond its readings, A of an unbounded fit rests on the law alone, so only the level it has reached
    counts as its lower end.
    """
    draws = ceilings_under_one_law([*fits, *baseline])
    sides = ((fits, draws[: len(fits)]), (baseline, draws[len(fits) :]))
    means = [np.mean(of_side, axis=0) for _, of_side in sides]
    if _is_by_eq1(fits) and _is_by_eq1(baseline):
        estimate = _estimated(fits) - _estimated(baseline)
    else:
        estimate = float(np.median(means[0] - means[1]))
    offsets = spread.differences(starts_of(fits), starts_of(baseline), means[0].size)
    at_least = [np.mean([_at_least(*one) for one in zip(*side, strict=True)], axis=0) for side in sides]
    lower, upper = at_least[0] - means[1] + offsets, at_least[1] - means[0] + offsets
    below = interval_of(estimate, lower, has_lo=_is_bounded(baseline), comparisons=comparisons)
    above = interval_of(-estimate, upper, has_lo=_is_bounded(fits), comparisons=comparisons)
    hi, joint_hi = (None if end is None else -end for end in (above.lo, above.joint_lo))
    return JointInterval(
        estimate=estimate,
        lo=below.lo,
        hi=hi,
        joint_lo=below.joint_lo,
        joint_hi=joint_hi,
        is_shown=_is_bounded([*fits, *baseline]),
    )


def common_target(fits: Sequence[Fit]) -> float | None:
    """The target: 80 % of the way from R_0 (mean over the fits) to the lowest level at the end of any curve's window.

    None if a curve does not rise to it within its window.
    """
    R_0 = float(np.mean([fit.R_0 for fit in fits]))
    lowest = min(float(fit.predict(fit.window[1])[0]) for fit in fits)
    if lowest <= R_0 or any(fit.verdict == "no rise" for fit in fits):
        return None
    target = R_0 + TARGET_SHARE * (lowest - R_0)
    reached = (_reaches(fit, target) for fit in fits)
    return (
        target if all(C and fit.window[0] <= C <= fit.window[1] for C, fit in zip(reached, fits, strict=True)) else None
    )


def target_repeats(fits: Sequence[Fit], target: float) -> Repeats:
    """Evidence on the run-to-run spread at the target from a variant's seeds, in pass rate.

    The slope of each curve there, dR / d ln C, converts compute to pass rate.
    """
    needed = [_reaches(fit, target) for fit in fits]
    slope = float(np.mean([_slope(fit, C) for fit, C in zip(fits, needed, strict=True)]))
    own = [float(fit.predict_draws(C).var()) for fit, C in zip(fits, needed, strict=True)]
    return Repeats.of([slope * math.log(C) for C in needed], own, starts_of(fits))


def compute_ratio(
    fits: Sequence[Fit], baseline: Sequence[Fit], spread: RunToRun, *, comparisons: int = 1
) -> JointInterval | None:
    """Compute that `fits` need to reach the common target, divided by the compute that `baseline` needs.

    `spread` is the run-to-run spread of the pass rate at the target. None if there is no common target. Seeds are
    averaged by geometric mean.
    """
    target = common_target([*fits, *baseline])
    if target is None:
        return None
    offsets = spread.run_offsets([starts_of(fits), starts_of(baseline)], fits[0].draws.A.size)
    top, bottom = (
        [(_reaches(fit, target), fit.compute_draws(target - of_run)) for fit, of_run in zip(*side, strict=True)]
        for side in zip((fits, baseline), offsets, strict=True)
    )
    return _geometric_ratio(top, bottom, comparisons=comparisons)


def _reaches(fit: Fit, target: float) -> float:
    """Compute at which the fitted curve passes the target; 0 if it never does."""
    return fit.compute_at(target) or 0.0


def _slope(fit: Fit, compute: float) -> float:
    """dR / d ln C of the fitted curve, B (R - R_0) (A - R) / (A - R_0)."""
    R = float(fit.predict(compute)[0])
    return fit.B * (R - fit.R_0) * (fit.A - R) / (fit.A - fit.R_0)


def _geometric_ratio(top: Sequence[Sided], bottom: Sequence[Sided], *, comparisons: int = 1) -> JointInterval:
    """Ratio of geometric means of (estimate, draws), with its interval from the draws."""
    logs, baseline_logs = (np.log([estimate for estimate, _ in side]) for side in (top, bottom))
    found = _log_ratio_interval(float(logs.mean() - baseline_logs.mean()), top, bottom, comparisons)
    lo, hi, joint_lo, joint_hi = (
        None if end is None else math.exp(end) for end in (found.lo, found.hi, found.joint_lo, found.joint_hi)
    )
    return JointInterval(estimate=math.exp(found.estimate), lo=lo, hi=hi, joint_lo=joint_lo, joint_hi=joint_hi)


def _log_ratio_interval(
    estimate: float, top: Sequence[Sided], bottom: Sequence[Sided], comparisons: int
) -> JointInterval:
    """The interval of the draws' log ratio. A curve that never reaches the target needs infinite compute; one that
    starts above the target needs none. If both sides say so, the ratio may be anything and counts against either end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [np.mean([np.log(draws) for _, draws in side], axis=0) for side in (top, bottom)]
        draws = sides[0] - sides[1]
    is_anything = np.isnan(draws)
    below = interval_of(estimate, np.where(is_anything, -np.inf, draws), comparisons=comparisons)
    above = interval_of(estimate, np.where(is_anything, np.inf, draws), comparisons=comparisons)
    return JointInterval(estimate=estimate, lo=below.lo, hi=above.hi, joint_lo=below.joint_lo, joint_hi=above.joint_hi)


def _is_bounded(fits: Sequence[Fit]) -> bool:
    return all(fit.ceiling.hi is not None for fit in fits)


def _is_by_eq1(fits: Sequence[Fit]) -> bool:
    """True if eq. 1 gives the estimate of a variant's ceiling, by its mean weight over the seeds."""
    return float(np.mean([fit.alternatives.eq1_weight for fit in fits])) >= EQ1_LEADS


def _estimated(fits: Sequence[Fit]) -> float:
    """The mean ceiling of the seeds: by eq. 1, or the median over all families of their mean."""
    if _is_by_eq1(fits):
        return float(np.mean([fit.A for fit in fits]))
    return float(np.median(np.mean([fit.ceiling.draws for fit in fits], axis=0)))


def _with_spread(
    estimate: float, fits: Sequence[Fit], draws: Sequence[np.ndarray], spread: RunToRun | None
) -> Interval:
    """The interval of a mean over seeds, including the run-to-run spread."""
    between = run_to_run([ceiling_repeats(fits)]) if spread is None else spread
    apart = between.mean_offsets(starts_of(fits), draws[0].size)
    return interval_of(estimate, np.clip(np.mean(draws, axis=0) + apart, 0, 1))


def _at_least(fit: Fit, draws: np.ndarray) -> np.ndarray:
    """Draws of A for the lower end of a comparison; for an unbounded fit, the level at the end of its readings."""
    return draws if fit.ceiling.hi is not None else fit.predict_draws(fit.window[1])[:, 0]
