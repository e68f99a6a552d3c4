"""The half-width that each verdict's interval would have, and the difference that the verdict would see.

A verdict sees a difference where its interval leaves out 0. The estimate e of a true difference d scatters with a
standard deviation s, and the interval reaches e - h to e + h, h from one study to the next:

    P(seen) = mean over h of Phi((d - h) / s)

The smallest difference seen is the d at which this is POWER. For the level s and h are closed forms. For ceiling and
compute they come from curves of the known law with the known noise, fitted and compared as a study's own curves are.
How runs of one recipe differ enters twice: in s by what is known of the scale, in h by what the study itself would
find of it from its own seeds, a scaled chi-squared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import gammaincinv, ndtr

from ablations.design.known import KnownScale
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.verdict.differences import (
    ceiling_difference,
    ceiling_repeats,
    common_target,
    compute_ratio,
    target_repeats,
)
from ablations.verdict.interval import Interval
from ablations.verdict.level import Level, level_difference, level_of
from ablations.verdict.run_to_run import Repeats, RunToRun, run_to_run

Question = Literal["level", "ceiling", "compute"]

POWER = 0.8
NUM_STUDIES = 24
"""Studies that are simulated of each design."""
NUM_CURVES = 20
"""Curves that they draw their runs from."""
ENDLESS = math.inf
FARTHEST: dict[Question, float] = {"level": 1.0, "ceiling": 0.25, "compute": math.log(4)}
"""A variant that differs by more would have other readings than those simulated, so nothing is said of it."""
SEED = 16


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What one verdict would see: Sight(half_width=0.017, seen=0.024); in ln for compute. None where it cannot."""

    half_width: float | None
    seen: float | None
    """The smallest difference that is seen with a probability of POWER."""

    def to_json(self, question: Question) -> dict[str, float | None]:
        """Plain data for JSON; of compute both are factors."""
        return {
            name: None if value is None else math.exp(value) if question == "compute" else value
            for name, value in (("half_width", self.half_width), ("seen", self.seen))
        }


BLIND = Sight(half_width=None, seen=None)


def smallest_seen(half_widths: np.ndarray, sd: float) -> float | None:
    """The d at which the mean of Phi((d - h) / sd) over half-widths h is POWER; None where too many h are infinite."""
    finite = half_widths[np.isfinite(half_widths)]
    if finite.size < POWER * half_widths.size or not finite.size:
        return None
    lo, hi = 0.0, float(finite.max()) + 10 * sd
    if finite.size / half_widths.size - POWER < 1e-9:  # only then is hi not far enough for certain
        return hi
    for _ in range(60):
        d = (lo + hi) / 2
        power = float(np.sum(ndtr((d - finite) / sd))) / half_widths.size
        lo, hi = (lo, d) if power >= POWER else (d, hi)
    return hi


def sight_of(half_widths: np.ndarray, sd: float) -> Sight:
    """The median half-width and the smallest difference seen; no half-width where half of the studies have none."""
    median = float(np.median(half_widths))
    return Sight(half_width=median if math.isfinite(median) else None, seen=smallest_seen(half_widths, sd))


def found_spread(variance: float, own_variance: float, freedom: int, quantile: float) -> RunToRun:
    """What a study finds of the run-to-run sd from `freedom` degrees of freedom, at a quantile of its chi-squared.

    `variance` is that of one run's number about its recipe's, errors of its readings included: squares ~ variance
    chi^2(freedom). The comparison takes `own_variance` of it for errors of the readings.
    """
    if freedom < 1:
        return run_to_run([])
    squares = variance * 2 * float(gammaincinv(freedom / 2, quantile))
    return run_to_run([Repeats(squares=squares, freedom=freedom, own_variance=own_variance)])


def quantiles_of(number: int) -> np.ndarray:
    """So many equally likely quantiles: their midpoints, shape (number,)."""
    return (np.arange(number) + 0.5) / number


def level_sight(curve: Curve, known: KnownScale, *, num_variants: int, num_seeds: int, compute: float) -> Sight:
    """Of the level at `compute`; `curve` has the readings that a run is expected to have, without noise."""
    level = level_of(curve, compute)
    if level is None:
        return BLIND
    tau = known.spread.level
    variance = tau**2 + level.variance
    levels = [Level(value=level.value, variance=level.variance)] * num_seeds
    freedom = num_variants * (num_seeds - 1)
    spreads = (found_spread(variance, level.variance, freedom, u) for u in quantiles_of(NUM_STUDIES if freedom else 1))
    half_widths = np.array([_half(level_difference(levels, levels, spread)) for spread in spreads])
    return sight_of(half_widths, math.sqrt(2 * variance / num_seeds))


def expected_curve(known: KnownScale, compute: np.ndarray, samples: float | None) -> Curve:
    """The readings of a run without noise; `samples` per reading, as many as independent ones would have."""
    score = np.clip(known.law(compute), 0.0, 1.0)
    return Curve(name="expected", compute=compute, score=score, samples=_as_samples(compute, samples))


def simulated_fits(known: KnownScale, compute: np.ndarray, samples: float | None, settings: FitSettings) -> list[Fit]:
    """Fits of NUM_CURVES runs of the known law and noise; run-to-run differences are left out."""
    expected = expected_curve(known, compute, samples)
    sampling = 0.0 if expected.samples is None else expected.score * (1 - expected.score) / expected.samples
    rng = np.random.default_rng(SEED)
    fits = []
    for _ in range(NUM_CURVES):
        wander = autoregressive(rng.standard_normal(compute.size), known.autocorrelation)
        noise = known.run_sd * wander + np.sqrt(sampling) * rng.standard_normal(compute.size)
        score = np.clip(expected.score + noise, 0.0, 1.0)
        curve = Curve(name="simulated", compute=compute, score=score, samples=expected.samples)
        fits.append(_fitted(curve, settings))
    return fits


def _fitted(curve: Curve, settings: FitSettings) -> Fit:
    """Without the ceiling of the task where a curve lies above it: by chance, or as the law was only assumed."""
    try:
        return fit_with(curve, settings, through_collapse=True)
    except AblationsError:
        return fit_with(curve, replace(settings, ceiling=None), through_collapse=True)


def autoregressive(white: np.ndarray, rho: float) -> np.ndarray:
    """AR(1) noise of variance 1 from white noise: x_i = rho x_i-1 + sqrt(1 - rho^2) w_i."""
    x = white.copy()
    for i in range(1, x.size):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * white[i]
    return x


def curve_sights(fits: Sequence[Fit], known: KnownScale, *, num_variants: int, num_seeds: int) -> dict[Question, Sight]:
    """Of ceiling and compute, from simulated fits that each study draws its two sides from."""
    rng = np.random.default_rng([SEED, num_seeds])
    quantiles = rng.permutation(quantiles_of(NUM_STUDIES))
    again = 2 * num_seeds > len(fits)
    drawn = [rng.choice(len(fits), (2, num_seeds), replace=again) for _ in range(NUM_STUDIES)]
    sides = [tuple([fits[i] for i in side] for side in both) for both in drawn]
    ceilings = _ceiling_spreads(fits, known, num_variants, num_seeds, quantiles)
    found = [ceiling_difference(a, b, spread) for (a, b), spread in zip(sides, ceilings, strict=True)]
    between = 2 * known.spread.ceiling**2 / num_seeds
    seen: dict[Question, Sight] = {"ceiling": _sight_of_intervals("ceiling", found, between), "compute": BLIND}
    target = common_target(fits)
    if target is None:
        return seen
    slope = _slope(known, fits, target)
    targets = _target_spreads(fits, target, known, num_variants, num_seeds, quantiles)
    ratios = [compute_ratio(a, b, spread) for (a, b), spread in zip(sides, targets, strict=True)]
    between = 2 * (known.spread.target / slope) ** 2 / num_seeds
    seen["compute"] = _sight_of_intervals("compute", [_in_ln(ratio) for ratio in ratios], between)
    return seen


def _ceiling_spreads(
    fits: Sequence[Fit], known: KnownScale, num_variants: int, num_seeds: int, quantiles: np.ndarray
) -> list[RunToRun]:
    """Only variants of which every seed has an upper end say how far ceilings lie apart."""
    bounded = [fit for fit in fits if fit.A_hi is not None]
    share = (len(bounded) / len(fits)) ** num_seeds
    freedom = round(num_variants * share) * (num_seeds - 1) if len(bounded) > 1 else 0
    if not freedom:
        return [found_spread(0.0, 0.0, 0, u) for u in quantiles]
    repeats = ceiling_repeats(bounded)
    variance = known.spread.ceiling**2 + repeats.squares / repeats.freedom
    return [found_spread(variance, repeats.own_variance, freedom, u) for u in quantiles]


def _target_spreads(
    fits: Sequence[Fit], target: float, known: KnownScale, num_variants: int, num_seeds: int, quantiles: np.ndarray
) -> list[RunToRun]:
    repeats = target_repeats(fits, target)
    variance = known.spread.target**2 + repeats.squares / repeats.freedom
    freedom = num_variants * (num_seeds - 1)
    return [found_spread(variance, repeats.own_variance, freedom, u) for u in quantiles]


def _slope(known: KnownScale, fits: Sequence[Fit], target: float) -> float:
    """dR / d ln C of the law where the fits pass the target."""
    needed = [C for fit in fits if (C := fit.compute_to_reach(target)[0])]
    C = math.exp(float(np.mean(np.log(needed))))
    below, above = known.law(C * np.exp(np.array([-0.05, 0.05])))
    return float(above - below) / 0.1


def _in_ln(ratio: Interval | None) -> Interval:
    if ratio is None:
        return Interval(estimate=0.0, lo=None, hi=None)
    lo, hi = (None if end is None else math.log(end) for end in (ratio.lo, ratio.hi))
    return Interval(estimate=math.log(ratio.estimate), lo=lo, hi=hi)


def _sight_of_intervals(question: Question, found: Sequence[Interval], between: float) -> Sight:
    """`between` is the variance that runs of one recipe add to a difference; the estimates have that of the fits.

    Both ends count: whichever side of 0 the truth lies on, one of them has to leave 0 out.
    """
    half_widths = [
        (ENDLESS if one.lo is None else one.estimate - one.lo, ENDLESS if one.hi is None else one.hi - one.estimate)
        for one in found
    ]
    bounded = [one.estimate for one in found if one.lo is not None and one.hi is not None]
    variance = float(np.mean(np.square(bounded))) if bounded else 0.0
    sight = sight_of(np.array(half_widths).ravel(), math.sqrt(variance + between))
    is_far = sight.seen is not None and sight.seen > FARTHEST[question]
    return Sight(half_width=sight.half_width, seen=None) if is_far else sight


def _half(interval: Interval) -> float:
    assert interval.lo is not None, "nothing unbounds a level"
    assert interval.hi is not None, "nothing unbounds a level"
    return (interval.hi - interval.lo) / 2


def _as_samples(compute: np.ndarray, samples: float | None) -> np.ndarray | None:
    return None if samples is None else np.full(compute.size, samples)
