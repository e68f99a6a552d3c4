"""Differences between the fits of a variant and of the reference: in ceiling, and in compute to a common target.

Every seed gives one number, and the scatter of the seeds' numbers is their uncertainty (`run_to_run`): it covers both
the run-to-run spread and the error of each fit. A ceiling is uncertain for a further reason, which all seeds share: the
law of the curves beyond the readings is unknown. So the ceilings of all runs are taken under each family in turn, and
the interval is that of the mixture of the answers (`one_law`). Compute to a target within the readings comes from eq.
1, since the families that fit agree there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import chdtri

from ablations.answers.interval import TAIL, Interval, JointInterval, only_estimate
from ablations.answers.one_law import ceiling_under, law_weights, mean_law_weights
from ablations.answers.repeats import Repeats
from ablations.answers.rise import rise_together
from ablations.answers.run_to_run import RunToRun
from ablations.answers.student import Student, quantile
from ablations.fit.ceiling import EQ1_LEADS, MOST_OPEN
from ablations.fit.engine.family import SIGMOID
from ablations.fit.result import Fit

TARGET_SHARE = 0.8
NORMAL_68 = (0.159, 0.841)
FARTHEST_LN = math.log(100.0)
"""Half-width, in ln of compute, assigned to a fit whose draws seldom reach the target."""


def starts_of(fits: Sequence[Fit]) -> list[str]:
    """The start of each run."""
    return [fit.curve.start for fit in fits]


def ceilings_under(fits: Sequence[Fit], law: str = SIGMOID.name) -> Repeats:
    """The ceilings of a variant's seeds under one family."""
    found = [ceiling_under(fit, law) for fit in fits]
    return Repeats.of([A for A, _ in found], [variance for _, variance in found], starts_of(fits))


def mean_ceiling(fits: Sequence[Fit], spread: RunToRun) -> Interval:
    """Mean A over seeds, with the run-to-run `spread` of A.

    An unbounded variant is at least as high as the mean lower bound of its seeds' fits, and as the level it has
    reached; either may be wrong, so the level gets half the tail. With an unknown spread, as of one seed, the interval
    is that of the fits' mean: it describes these runs, not their recipe.
    """
    if not is_bounded(fits):
        estimate = _estimated(fits)
        lo = float(np.mean([fit.ceiling.lo for fit in fits]))
        if spread.is_known:
            lo = max(lo, quantile(_means(fits, spread, bounded=False), TAIL / 2))
        return Interval(estimate=estimate, lo=min(lo, estimate), hi=None)
    if not spread.is_known:
        return _of_these_runs(_estimated(fits), [(fit.ceiling.lo, fit.ceiling.hi) for fit in fits])
    parts = _means(fits, spread, bounded=True)
    return _possible(parts, middle(parts, by_eq1=all_by_eq1(fits)), fits)


def _means(fits: Sequence[Fit], spread: RunToRun, *, bounded: bool) -> list[Student]:
    """The mean ceiling of the seeds under each law; for an unbounded variant, the level it has reached."""
    return [
        replace(spread.under.get(law, spread).of_mean(_at_least(fits, law, bounded=bounded)), weight=weight)
        for law, weight in law_weights(fits).items()
    ]


def mean_ceiling_under_eq1(fits: Sequence[Fit], spread: RunToRun) -> Interval:
    """Mean A over seeds if eq. 1 is the law; otherwise like `mean_ceiling`."""
    estimate = float(np.mean([fit.eq1_A for fit in fits]))
    if not _is_bounded_by(fits, SIGMOID.name):
        return Interval(estimate=estimate, lo=float(np.mean([fit.eq1_lo for fit in fits])), hi=None)
    if not spread.is_known:
        return _of_these_runs(estimate, [(fit.eq1_lo, fit.eq1_hi) for fit in fits])
    return _possible([found := spread.of_mean(ceilings_under(fits))], found.estimate, fits)


def ceiling_difference(
    fits: Sequence[Fit], baseline: Sequence[Fit], spread: RunToRun, *, comparisons: int = 1
) -> JointInterval:
    """A of `fits` minus A of `baseline`; `spread` is the run-to-run spread of A.

    The estimate comes from eq. 1 if eq. 1 gives both ceilings, else from the median over all families, weighted alike
    for all runs. Beyond its readings, A of an unbounded variant rests on the law alone, so only the level it has
    reached counts as its lower end. No end lies farther out than A of one side at its own lower end minus the known
    ceiling of the task; since either may be wrong, A's own end gets half the tail.
    """
    bounded, bounded_baseline = is_bounded(fits), is_bounded(baseline)
    if not spread.is_known:
        estimate, is_shown = _estimated(fits) - _estimated(baseline), bounded and bounded_baseline
        return only_estimate(estimate, num_seeds=min(len(fits), len(baseline)), is_shown=is_shown)

    def parts(*, lower: bool) -> list[Student]:
        """The difference under each law; the level reached by an unbounded variant sets the lower end, that of an
        unbounded baseline the upper end."""
        return [
            replace(
                spread.under.get(law, spread).of_difference(
                    _at_least(fits, law, bounded=bounded or not lower),
                    _at_least(baseline, law, bounded=bounded_baseline or lower),
                ),
                weight=weight,
            )
            for law, weight in law_weights([*fits, *baseline]).items()
        ]

    below = parts(lower=True)
    above = below if bounded and bounded_baseline else parts(lower=False)
    estimate = middle(below if bounded else above, by_eq1=all_by_eq1(fits) and all_by_eq1(baseline))
    tails = (TAIL, TAIL / comparisons)
    lo = joint_lo = hi = joint_hi = None
    if bounded_baseline:
        own, known = _means(fits, spread, bounded=bounded), _highest(fits)
        ends = ((quantile(below, tail), quantile(own, tail / 2) - known) for tail in tails)  # either may be wrong
        lo, joint_lo = (min(max(end, bound), estimate) for end, bound in ends)
    if bounded:
        own, known = _means(baseline, spread, bounded=bounded_baseline), _highest(baseline)
        ends = ((quantile(above, 1 - tail), known - quantile(own, tail / 2)) for tail in tails)
        hi, joint_hi = (max(min(end, bound), estimate) for end, bound in ends)
    return JointInterval(
        estimate=estimate, lo=lo, hi=hi, joint_lo=joint_lo, joint_hi=joint_hi, is_shown=bounded and bounded_baseline
    )


def common_target(variants: Sequence[Sequence[Fit]]) -> float | None:
    """The target: 80 % of the way from R_0 (mean over the fits) to the lowest level at the end of any curve's window.

    None if a variant does not rise, or a curve does not reach it within its window.
    """
    fits = [fit for seeds in variants for fit in seeds]
    R_0 = float(np.mean([fit.R_0 for fit in fits]))
    lowest = min(float(fit.predict(fit.window[1])[0]) for fit in fits)
    if lowest <= R_0 or not all(rise_together(seeds) for seeds in variants if seeds):
        return None
    target = R_0 + TARGET_SHARE * (lowest - R_0)
    is_reached = all(fit.window[0] <= _reaches(fit, target) <= fit.window[1] for fit in fits)
    return target if is_reached else None


def ln_computes(fits: Sequence[Fit], target: float) -> Repeats:
    """ln of the compute that each of a variant's seeds needs to reach a pass rate."""
    needed = [math.log(_reaches(fit, target)) for fit in fits]
    return Repeats.of(needed, [_ln_compute_variance(fit, target) for fit in fits], starts_of(fits))


def is_bounded(fits: Sequence[Fit]) -> bool:
    """True if the seeds of a variant together bound its ceiling: the families under which every seed may have a ceiling
    of 1 have a weight of at most MOST_OPEN.

    A mean ceiling of 1 needs one of 1 for every seed, since none is higher. So twice the log likelihood ratios add up,
    chi-squared with as many degrees of freedom as seeds.
    """
    weights = mean_law_weights([fit.alternatives.weights for fit in fits])
    can_be_1 = (
        weight
        for name, weight in weights.items()
        if weight and not _is_bounded_by([fit for fit in fits if fit.alternatives.weights[name]], name)
    )
    return sum(can_be_1) <= MOST_OPEN


def _is_bounded_by(fits: Sequence[Fit], law: str) -> bool:
    """True if the seeds together rule out a ceiling of 1 under this law."""
    return sum(fit.alternatives.deviance_of_1[law] for fit in fits) >= float(chdtri(len(fits), 0.05))


def _reaches(fit: Fit, target: float) -> float:
    """Compute at which the fitted curve passes the target; 0 if it never does."""
    return fit.compute_at(target) or 0.0


def _ln_compute_variance(fit: Fit, target: float) -> float:
    """Variance of ln compute to the target, from the middle 68 % of the draws."""
    lo, hi = np.quantile(fit.compute_draws(target), NORMAL_68, method="closest_observation")
    if lo <= 0 or not math.isfinite(hi):
        return FARTHEST_LN**2
    return ((math.log(hi) - math.log(lo)) / 2) ** 2


def all_by_eq1(fits: Sequence[Fit]) -> bool:
    """True if eq. 1 gives the estimate of a variant's ceiling, by its mean weight over the seeds."""
    return float(np.mean([fit.alternatives.eq1_weight for fit in fits])) >= EQ1_LEADS


def _estimated(fits: Sequence[Fit]) -> float:
    """The mean ceiling of the seeds: by eq. 1, or the median over all families of their mean."""
    if all_by_eq1(fits):
        return float(np.mean([fit.eq1_A for fit in fits]))
    return float(np.median(np.mean([fit.ceiling.draws for fit in fits], axis=0)))


def middle(parts: Sequence[Student], *, by_eq1: bool) -> float:
    """The estimate of eq. 1, the first law, or the median over all laws."""
    return parts[0].estimate if by_eq1 else quantile(parts, 0.5)


def _of_these_runs(estimate: float, ends: Sequence[tuple[float, float | None]]) -> Interval:
    """The mean of the intervals of several runs, without an upper end if one of them has none. It includes the
    estimate, which may be the median of a mean and not a mean of medians."""
    lo = min(float(np.mean([lo for lo, _ in ends])), estimate)
    known = [hi for _, hi in ends if hi is not None]
    return Interval(
        estimate=estimate, lo=lo, hi=max(float(np.mean(known)), estimate) if len(known) == len(ends) else None
    )


def _possible(parts: Sequence[Student], estimate: float, fits: Sequence[Fit]) -> Interval:
    """The interval of A, between 0 and the known ceiling of the task, 1 if unknown."""
    lo, hi = quantile(parts, TAIL), quantile(parts, 1 - TAIL)
    return Interval(estimate=estimate, lo=min(max(lo, 0.0), estimate), hi=max(min(hi, _highest(fits)), estimate))


def _highest(fits: Sequence[Fit]) -> float:
    """The known ceiling of the task, 1 if unknown."""
    return max(fit.settings.highest for fit in fits)


def _at_least(fits: Sequence[Fit], law: str, *, bounded: bool) -> Repeats:
    """The ceilings under a family; for an unbounded variant, the levels at the end of its readings."""
    if bounded:
        return ceilings_under(fits, law)
    reached = [fit.predict_draws(fit.window[1])[:, 0] for fit in fits]
    return Repeats.of(
        [float(np.median(one)) for one in reached], [float(one.var()) for one in reached], starts_of(fits)
    )
