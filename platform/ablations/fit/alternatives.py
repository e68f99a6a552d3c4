"""Fits the other families to the readings of a fit: a weight for each beside eq. 1, and draws in proportion.

All families that fit agree within the readings. Beyond them nobody knows which family holds, so the ceiling is
averaged over the families.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.engine.ceiling_profile import CHI_SQUARED_95
from ablations.fit.engine.family import DELAYED, FAMILIES, LATE_STARTS, LOG_LINEAR, SIGMOID, delayed
from ablations.fit.engine.noise import AR1, Noise
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import best_nodes, rough_nodes
from ablations.fit.engine.zoom import COARSE
from ablations.fit.family_weights import family_weights
from ablations.fit.readings import Readings

LEAST_CANDIDATES = 200
"""Minimum number of draws to choose from for a family with little weight."""
NUM_CEILINGS = 65
LEAST_DENSITY_RATIO = 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    """Another family: its draws replace eq. 1's draws in `rows`, in proportion to its weight."""

    family: str
    """Name of the family."""
    rows: slice
    draws: Draws

    @property
    def ceilings(self) -> np.ndarray:
        """A of every draw; 1 for the family without a ceiling."""
        return np.ones(self.draws.r.size) if self.family == LOG_LINEAR.name else self.draws.r + self.draws.a


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternatives:
    """Weights of all families and draws of those beside eq. 1, in the order of FAMILIES.

    Alternatives(weights={"sigmoid": 0.62, "power law": 0.05, ..., "Weibull": 0.3}, others=(Alternative(...), ...))

    Every fit keeps this order, so draw i of two fits belongs to the same family as far as their weights agree.
    Differences and means are then taken under one law, and averaging seeds does not average out the doubt about it.
    """

    weights: dict[str, float]
    """Akaike weights by family name; they sum to 1."""
    others: tuple[Alternative, ...]
    deviance_of_1: dict[str, float]
    """Twice the log of the likelihood of the best ceiling over that of a ceiling of 1, by name of each family that has
    weight: 0 for the family without a ceiling, infinite if something other than the readings rules out 1."""

    @property
    def open_weight(self) -> float:
        """Total weight of the families that are allowed a ceiling of 1."""
        return sum(self.weights[name] for name, deviance in self.deviance_of_1.items() if deviance < CHI_SQUARED_95)

    def times(self, unit: float) -> "Alternatives":
        """Convert from units of `unit` to pass rates."""
        scaled = [
            replace(each, draws=each.draws._replace(r=unit * each.draws.r, a=unit * each.draws.a))
            for each in self.others
        ]
        return replace(self, others=tuple(scaled))

    @property
    def eq1_weight(self) -> float:
        return self.weights[SIGMOID.name]


def alternatives(
    readings: Readings, *, noise: AR1, noises: Noise, variance: float, num_draws: int, eq1_deviance_of_1: float
) -> Alternatives:
    """Fit every family beside eq. 1; each gets as many of `num_draws` as its weight.

    `noise` is the noise found for eq. 1, `noises` are those to average over, `variance` is roughly that of one reading.
    An infinite `eq1_deviance_of_1` rules a ceiling of 1 out under every law.
    """
    offset = _offset(readings, noise)
    weights = family_weights(readings, noise, offset)
    ends = np.rint(num_draws * np.cumsum(list(weights.values()))).astype(int)
    others, deviance_of_1 = [], {SIGMOID.name: eq1_deviance_of_1}
    for family, start, end in zip(FAMILIES[1:], ends[:-1], ends[1:], strict=True):
        if end <= start:
            continue
        num = int(end - start)
        own_offset = offset if family.name == DELAYED else 0.0
        drawn = sample(
            delayed(own_offset) if own_offset else family,
            readings.x,
            readings.score,
            noise=noises,
            anchors=readings.anchors,
            variance=variance,
            num_draws=max(num, LEAST_CANDIDATES),
            fineness=COARSE,
        )
        rows = slice(int(start), int(end))
        draws = drawn.of(np.arange(num))
        others.append(Alternative(family=family.name, rows=rows, draws=draws))
        own = 0.0 if family is LOG_LINEAR else density_deviance_of_1(drawn)
        deviance_of_1[family.name] = math.inf if math.isinf(eq1_deviance_of_1) else own
    return Alternatives(weights=weights, others=tuple(others), deviance_of_1=deviance_of_1)


def _offset(readings: Readings, noise: AR1) -> float:
    """The offset of the delayed family that fits best: of LATE_STARTS, then halving the distance twice."""
    prior = readings.anchors[0].prior(noise.run_variance)
    found: dict[float, float] = {}
    offsets, best = LATE_STARTS, LATE_STARTS[0]
    for _ in range(3):
        grids = [rough_nodes(delayed(offset), readings.x) for offset in offsets]
        misfits = best_nodes(grids, readings.score, variance=noise.variance, priors=[prior])[2][0]
        found |= zip(offsets, misfits.tolist(), strict=True)
        tried = sorted(found)
        best = min(tried, key=lambda offset: found[offset])
        beside = tried[max(tried.index(best) - 1, 0) : tried.index(best) + 2]
        offsets = [(best + other) / 2 for other in beside if other != best]
    return best


def density_deviance_of_1(draws: Draws) -> float:
    """Twice the log of the highest posterior density of the ceiling over that at 1."""
    density = draws.ceiling_density(np.linspace(float(np.quantile(draws.r + draws.a, 0.025)), 1, NUM_CEILINGS))
    return -2 * math.log(max(float(density[-1] / density.max()), LEAST_DENSITY_RATIO))
