"""The expected half-width of each verdict's interval, and the smallest difference that the verdict detects.

A verdict sees a difference if its interval excludes 0. The estimate e of a true difference d scatters with a standard
deviation s, and its interval's end towards 0 lies h away from it, with h varying from study to study:

    P(seen) = mean over h of Phi((d - h) / s)

The smallest difference seen is the d at which this probability is POWER. For the level, s and h have closed forms. For
ceiling and compute they come from simulated runs (`simulated_runs`): runs of the reference and of a variant that
differs by d, with the known law and noise, fitted and compared as in a study. An iteration over d finds the fixed
point. For compute the variant is slower; for the ceiling it ends lower.

A study does not know beforehand which kind its variants are, so the predicted half-width is the wider one over both
kinds, each with the difference that is looked for. The spread of runs with the same start enters twice: s uses the
spread known for the scale, and h uses the spread that the study itself would estimate from its seeds, a scaled
chi-squared.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import gammaincinv, ndtr

from ablations.answers.differences import (
    ceiling_difference,
    ceiling_repeats,
    common_target,
    compute_ratio,
    target_repeats,
)
from ablations.answers.interval import Interval
from ablations.answers.known import KnownScale
from ablations.answers.level import Level, level_difference, level_of
from ablations.answers.questions import CEILING, COMPUTE
from ablations.answers.run_to_run import Repeats, RunToRun, run_to_run
from ablations.answers.simulated_runs import SEED, DifferenceKind, SimulatedRuns, grid_difference
from ablations.fit.curve import Curve
from ablations.fit.result import Fit

OfLaw = Literal["ceiling", "compute"]
"""Questions that a fitted law answers."""

POWER = 0.8
NUM_STUDIES = 24
"""Number of simulated studies per design."""
ENDLESS = math.inf
FARTHEST: dict[OfLaw, float] = {"ceiling": 0.25, "compute": math.log(4)}
"""Largest difference in the search."""
LOOKED_AT_FIRST: dict[OfLaw, float] = {"ceiling": CEILING.widest, "compute": 2 * COMPUTE.widest}
"""Start of the search, and the difference for which the half-width is predicted if no difference would be seen."""
KIND_OF: dict[OfLaw, DifferenceKind] = {"ceiling": "ends lower", "compute": "slower"}
MOST_LOOKS = 5


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The resolution of one verdict: Sight(half_width=0.017, seen=0.024, open=0.04); in ln for compute.

    None stands for a number that does not exist.
    """

    half_width: float | None
    seen: float | None
    """The smallest difference that is seen with a probability of POWER."""
    open: float = 0.0
    """Share of studies whose interval lacks an end."""

    def to_json(self, question: str) -> dict[str, float | None]:
        """Plain data for JSON; for compute, half-width and difference are factors."""
        in_unit = {
            name: None if value is None else math.exp(value) if question == "compute" else value
            for name, value in (("half_width", self.half_width), ("seen", self.seen))
        }
        return in_unit | {"open": self.open}


BLIND = Sight(half_width=None, seen=None, open=1.0)


def smallest_seen(half_widths: np.ndarray, sd: float) -> float | None:
    """The d at which the mean of Phi((d - h) / sd) over half-widths h is POWER; None if too many h are infinite."""
    finite = half_widths[np.isfinite(half_widths)]
    if finite.size < POWER * half_widths.size or not finite.size:
        return None
    lo, hi = 0.0, float(finite.max()) + 10 * sd
    if finite.size / half_widths.size - POWER < 1e-9:  # the only case in which hi may be too small
        return hi
    for _ in range(60):
        d = (lo + hi) / 2
        power = float(np.sum(ndtr((d - finite) / sd))) / half_widths.size
        lo, hi = (lo, d) if power >= POWER else (d, hi)
    return hi


def sight_of(half_widths: np.ndarray, sd: float) -> Sight:
    """The median half-width and the smallest difference seen; no half-width if half of the studies have none."""
    return Sight(half_width=widest([half_widths]), seen=smallest_seen(half_widths, sd), open=_open(half_widths))


def found_spread(
    variance: float, own_variance: float, freedom: int, quantile: float, others: Sequence[Repeats] = ()
) -> RunToRun:
    """The run-to-run sd that a study estimates with `freedom` degrees of freedom, at a quantile of its chi-squared.

    `variance` is the variance of one run's number about its recipe's, including reading errors: squares ~ variance
    chi^2(freedom). The comparison attributes `own_variance` of it to reading errors. `others` is the evidence of other
    sweeps.
    """
    if freedom < 1:
        return run_to_run([], others)
    squares = variance * 2 * float(gammaincinv(freedom / 2, quantile))
    return run_to_run([Repeats(squares=squares, freedom=freedom, own_variance=own_variance)], others)


def quantiles_of(number: int) -> np.ndarray:
    """Equally likely quantiles: their midpoints, shape (number,)."""
    return (np.arange(number) + 0.5) / number


def level_sight(curve: Curve, known: KnownScale, *, num_variants: int, num_seeds: int, compute: float) -> Sight:
    """The resolution for the level at `compute`; `curve` has the expected readings of a run, without noise."""
    level = level_of(curve, compute)
    if level is None:
        return BLIND
    tau = known.spread.level
    variance = tau**2 + level.variance
    levels = [Level(value=level.value, variance=level.variance, start=f"seed {seed}") for seed in range(num_seeds)]
    freedom = num_variants * (num_seeds - 1)
    quantiles = quantiles_of(NUM_STUDIES if freedom else 1)
    spreads = (found_spread(variance, level.variance, freedom, u, known.others.of("level")) for u in quantiles)
    half_widths = np.array([half_width(level_difference(levels, levels, spread)) for spread in spreads])
    return sight_of(half_widths, math.sqrt(2 * variance / num_seeds))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """The size of a study, including the reference: Sizes(num_variants=9, num_seeds=3)."""

    num_variants: int
    num_seeds: int


def curve_sights(runs: SimulatedRuns, *, num_variants: int, num_seeds: int) -> dict[str, Sight]:
    """The resolution for ceiling and compute; each study draws its two sides from the simulated runs."""
    sizes = Sizes(num_variants=num_variants, num_seeds=num_seeds)
    seen: dict[OfLaw, float | None] = {question: looked_for(question, runs, sizes) for question in KIND_OF}
    variants = [
        runs.variant(KIND_OF[question], LOOKED_AT_FIRST[question] if found is None else found)
        for question, found in seen.items()
    ]
    return {question: _sight(question, runs, variants, sizes, found) for question, found in seen.items()}


def _sight(
    question: OfLaw, runs: SimulatedRuns, variants: Sequence[Sequence[Fit]], sizes: Sizes, seen: float | None
) -> Sight:
    """The resolution against every kind of variant; the widest counts."""
    found = [[half_width(one) for one in studied(question, runs, each, sizes)] for each in variants]
    return Sight(half_width=widest(found), seen=seen, open=max(_open(half_widths) for half_widths in found))


def looked_for(question: OfLaw, runs: SimulatedRuns, sizes: Sizes) -> float | None:
    """The smallest detectable difference, for a variant that differs by that amount; None if there is none.

    Each iteration simulates a variant with the difference that the previous one found.
    """
    seen, looks = LOOKED_AT_FIRST[question], set[float]()
    while grid_difference(seen) not in looks and len(looks) < MOST_LOOKS:
        d = grid_difference(seen)
        looks.add(d)
        variant = runs.variant(KIND_OF[question], d)
        between = between_runs(question, runs, variant, sizes)
        if between is None:
            return None
        found = studied(question, runs, variant, sizes)
        nearest = smallest_seen(*ends_and_sd(question, found, d, between))
        if nearest is None or nearest > FARTHEST[question]:
            return None
        seen = nearest
    return seen


def ends_and_sd(
    question: OfLaw, found: Sequence[Interval], difference: float, between: float
) -> tuple[np.ndarray, float]:
    """Distance from the estimate to the interval's end towards 0, per study, and the sd of the estimate.

    A slower variant has a ratio above 1; a variant that ends lower has a ceiling difference below 0. `between` is the
    variance that run-to-run differences add; the estimates already have that of the fits.
    """
    truth, name = (difference, "lo") if question == "compute" else (-difference, "hi")
    ends = [(one.estimate, getattr(one, name)) for one in found]
    distances = np.array([ENDLESS if end is None else abs(end - estimate) for estimate, end in ends])
    errors = [estimate - truth for estimate, end in ends if end is not None]
    variance = float(np.mean(np.square(errors))) if errors else 0.0
    return distances, math.sqrt(variance + between)


def widest(half_widths: Iterable[Sequence[float] | np.ndarray]) -> float | None:
    """The largest median; None if half of the values of one kind are infinite."""
    medians = [float(np.median(of_kind)) for of_kind in half_widths]
    return max(medians) if all(math.isfinite(median) for median in medians) else None


def _open(half_widths: Sequence[float] | np.ndarray) -> float:
    return float(np.mean(np.isinf(half_widths)))


def half_width(interval: Interval) -> float:
    """Half-width of an interval; infinite if an end is missing."""
    return ENDLESS if interval.lo is None or interval.hi is None else (interval.hi - interval.lo) / 2


def studied(question: OfLaw, runs: SimulatedRuns, variant: Sequence[Fit], sizes: Sizes) -> list[Interval]:
    """Differences of a variant from the reference that NUM_STUDIES studies find, in ln for compute.

    For the run-to-run evidence, all variants of a study are taken to be like this one.
    """
    rng = np.random.default_rng([SEED, sizes.num_seeds])
    quantiles = rng.permutation(quantiles_of(NUM_STUDIES))
    reference = runs.reference
    sides = [[_drawn(rng, fits, sizes.num_seeds) for fits in (variant, reference)] for _ in range(NUM_STUDIES)]
    groups = ((reference, 1), (variant, sizes.num_variants - 1))
    if question == "ceiling":
        spreads = _ceiling_spreads(groups, runs.known, sizes, quantiles)
        return [ceiling_difference(a, b, spread) for (a, b), spread in zip(sides, spreads, strict=True)]
    spreads = _target_spreads(groups, runs.known, sizes, quantiles)
    return [_in_ln(compute_ratio(a, b, spread)) for (a, b), spread in zip(sides, spreads, strict=True)]


def between_runs(question: OfLaw, runs: SimulatedRuns, variant: Sequence[Fit], sizes: Sizes) -> float | None:
    """The variance of a difference due to run-to-run differences, in ln for compute.

    None if there is no target that all runs pass.
    """
    if question == "ceiling":
        return 2 * runs.known.spread.ceiling**2 / sizes.num_seeds
    reference = _rising(runs.reference)
    target = common_target([*reference, *_rising(variant)]) if reference else None
    if target is None:
        return None
    return 2 * (runs.known.spread.target / _slope(runs.known, reference, target)) ** 2 / sizes.num_seeds


def _drawn(rng: np.random.Generator, fits: Sequence[Fit], num_seeds: int) -> list[Fit]:
    """Draw `num_seeds` fits, each with the start of its seed, so that both sides of a study have the same seeds."""
    drawn = rng.choice(len(fits), num_seeds, replace=num_seeds > len(fits))
    return [replace(fits[i], curve=replace(fits[i].curve, start=f"seed {seed}")) for seed, i in enumerate(drawn)]


Groups = Sequence[tuple[Sequence[Fit], int]]
"""Fits of runs of one recipe, with the number of variants they represent."""


def _ceiling_spreads(groups: Groups, known: KnownScale, sizes: Sizes, quantiles: np.ndarray) -> list[RunToRun]:
    """Spreads of ceilings; only variants whose seeds all have an upper end give evidence."""
    bounded = [([fit for fit in fits if fit.A_hi is not None], len(fits), number) for fits, number in groups]
    saying = [
        (ceiling_repeats(some), number * (len(some) / num_all) ** sizes.num_seeds)
        for some, num_all, number in bounded
        if len(some) > 1
    ]
    return _found_spreads(saying, known.spread.ceiling, sizes, quantiles, known.others.of("ceiling"))


def _target_spreads(groups: Groups, known: KnownScale, sizes: Sizes, quantiles: np.ndarray) -> list[RunToRun]:
    rising = [(_rising(fits), number) for fits, number in groups]
    every = [fit for fits, _ in rising for fit in fits]
    target = common_target(every) if every else None
    saying = (
        [] if target is None else [(target_repeats(fits, target), number) for fits, number in rising if len(fits) > 1]
    )
    return _found_spreads(saying, known.spread.target, sizes, quantiles, known.others.of("target"))


def _found_spreads(
    saying: Sequence[tuple[Repeats, float]], tau: float, sizes: Sizes, quantiles: np.ndarray, others: Sequence[Repeats]
) -> list[RunToRun]:
    """Spreads that studies find; `saying` has the fits' errors for each kind of run, and the number of variants that
    give evidence.
    """
    number = sum(number for _, number in saying)
    freedom = round(number) * (sizes.num_seeds - 1)
    if not freedom:
        return [found_spread(0.0, 0.0, 0, u, others) for u in quantiles]
    fitted = sum(number * repeats.squares / repeats.freedom for repeats, number in saying) / number
    own = sum(number * repeats.own_variance for repeats, number in saying) / number
    return [found_spread(tau**2 + fitted, own, freedom, u, others) for u in quantiles]


def _rising(fits: Sequence[Fit]) -> list[Fit]:
    return [fit for fit in fits if fit.verdict != "no rise"]


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
