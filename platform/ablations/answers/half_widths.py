"""The expected half-width of each verdict's interval, and the smallest difference that the verdict detects.

The difference of two variants of n seeds has a standard error s with f degrees of freedom, so that

    half-width = t(.975, f) s          smallest difference seen with a power of .8 = (t(.975, f) + t(.8, f)) s

For a level s^2 = 2 (tau^2 + sampling) / n. For a ceiling and for ln compute the scatter of fits takes the place of the
sampling, that of a few simulated runs of the reference and of a slower variant (`simulated_runs`); a ceiling adds how
far the laws that fit disagree about the difference. tau is the spread known for the scale, of runs with the same start.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ablations.answers.differences import ceilings_under, common_target, is_bounded, ln_computes
from ablations.answers.level import level_of
from ablations.answers.one_law import law_weights
from ablations.answers.repeats import CommonSpread, Repeats
from ablations.answers.run_to_run import PRIOR_FREEDOM, pays_to_pair, wanted
from ablations.answers.simulated_runs import SimulatedRuns, expected_curve
from ablations.fit.result import Fit

POWER = 0.8
MOST_OPEN_STUDIES = 1 - POWER
"""Maximum share of studies without an end of the interval at which a difference is still detected with a power of
POWER."""
LEAST_READINGS = 3
"""Minimum number of readings of a run for a level, including the one before RL."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The resolution of one verdict: Sight(half_width=0.017, seen=0.024, open=0.04); in ln for compute.

    None marks a number that does not exist.
    """

    half_width: float | None
    seen: float | None
    """The smallest difference detected with a probability of POWER."""
    open: float = 0.0
    """Share of studies whose interval lacks an end."""

    def sees(self, difference: float) -> bool:
        """True if this difference (in pass rate; for compute in ln) is detected, with a probability of POWER."""
        return self.seen is not None and self.seen <= difference

    def to_json(self, question: str) -> dict[str, float | None]:
        """Plain data for JSON; for compute, half-width and difference are factors."""
        in_unit = {
            name: None if value is None else math.exp(value) if question == "compute" else value
            for name, value in (("half_width", self.half_width), ("seen", self.seen))
        }
        return in_unit | {"open": self.open}


BLIND = Sight(half_width=None, seen=None, open=1.0)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The size of a study, including the reference: Sizes(num_variants=9, num_seeds=3)."""

    num_variants: int
    num_seeds: int

    def freedom(self, others: Sequence[Repeats], sides: int = 2) -> float:
        """Degrees of freedom of a contrast of this many variants, as `RunToRun.of_contrast` computes them for variants
        of equal spread; 0 if the spread is unknown.
        """
        n, V = self.num_seeds, self.num_variants
        own = V * (n - 1)
        unpaired, paired = own + sum(one.freedom for one in wanted(others, own)), (V - 1) * (n - 1)
        is_paired = pays_to_pair(paired, unpaired)
        pool = paired if is_paired else unpaired
        of_side = (n - 1) * (1 - 1 / V if is_paired else 1.0)
        return min(sides * (min(PRIOR_FREEDOM, pool) + of_side), pool) if n > 1 else float(pool)


def sight_of(variance: float, freedom: float, share_open: float = 0.0) -> Sight:
    """The resolution of a difference with this variance; empty if the spread is unknown, or too many studies lack an
    end of the interval."""
    if freedom <= 0 or share_open > 0.5:
        return Sight(half_width=None, seen=None, open=1.0 if freedom <= 0 else share_open)
    t, t_of_power = (float(stdtrit(freedom, share)) for share in (0.975, POWER))
    s = math.sqrt(variance)
    seen = None if share_open > MOST_OPEN_STUDIES else (t + t_of_power) * s
    return Sight(half_width=t * s, seen=seen, open=share_open)


def sights(runs: SimulatedRuns, sizes: Sizes) -> dict[str, Sight]:
    """The resolution of each verdict, by the name of its question."""
    return {
        "level": level_sight(runs, sizes),
        "ceiling": ceiling_sight(runs, sizes),
        "compute": compute_sight(runs, sizes),
    }


def level_sight(runs: SimulatedRuns, sizes: Sizes, *, sides: int = 2) -> Sight:
    """The resolution for the level, of a difference, which has two `sides`, or of an interaction, which has four."""
    known, curve = runs.known, expected_curve(runs.known.law, runs.compute, runs.samples)
    level = level_of(curve, min(float(runs.compute[-1]), runs.settings.fit_to))
    if level is None or curve.compute.size < LEAST_READINGS:
        return BLIND
    variance = sides * (known.spread.level**2 + level.variance) / sizes.num_seeds
    return sight_of(variance, sizes.freedom(known.others.of("level"), sides))


def ceiling_sight(runs: SimulatedRuns, sizes: Sizes) -> Sight:
    """The resolution for the ceiling."""
    variant, reference = runs.variant, runs.reference
    tau, n = runs.known.spread.ceiling, sizes.num_seeds
    weights = law_weights([*variant, *reference])
    total = sum(weights.values())
    found = [(w / total, ceilings_under(variant, law), ceilings_under(reference, law)) for law, w in weights.items()]
    differences = np.array([np.mean(variant.values) - np.mean(reference.values) for _, variant, reference in found])
    shares = np.array([share for share, _, _ in found])
    errors = np.array([2 * CommonSpread.of([variant, reference]).sd ** 2 for _, variant, reference in found])
    between_laws = float(shares @ (differences - shares @ differences) ** 2)
    variance = (2 * tau**2 + float(shares @ errors)) / n + between_laws
    freedom = sizes.freedom(runs.known.others.of("ceiling"))
    return sight_of(variance, freedom, max(_open(side, n) for side in (variant, reference)))


def compute_sight(runs: SimulatedRuns, sizes: Sizes) -> Sight:
    """The resolution for compute to the common target, in ln."""
    target = common_target([runs.variant, runs.reference])
    if target is None:
        return BLIND
    sides = [ln_computes(side, target) for side in (runs.variant, runs.reference)]
    errors = 2 * CommonSpread.of(sides).sd ** 2
    tau = _ln_compute_sd(runs, target)
    variance = (2 * tau**2 + errors) / sizes.num_seeds
    return sight_of(variance, sizes.freedom(runs.known.others.of("compute")))


def _ln_compute_sd(runs: SimulatedRuns, target: float) -> float:
    """Run-to-run sd of ln compute; if unknown, from the sd of A: d ln C / dA = 1 / (B (A - R)) at R."""
    if runs.known.spread.compute is not None:
        return runs.known.spread.compute
    steepness = float(np.mean([fit.B * (fit.eq1_A - target) for fit in runs.reference]))
    return runs.known.spread.ceiling / steepness


def _open(fits: Sequence[Fit], num_seeds: int) -> float:
    """Share of studies with this number of seeds that bound no ceiling, each from neighbouring simulated runs."""
    studies = [[fits[(first + seed) % len(fits)] for seed in range(num_seeds)] for first in range(len(fits))]
    return float(np.mean([not is_bounded(study) for study in studies]))
