"""Fits the other families to the readings of a fit: a weight for each beside eq. 1, and draws in proportion.

All families that fit agree within the readings. Beyond them nobody knows which family holds, so the ceiling and
everything past the last reading are averaged over the families.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.engine.anchor import anchor_deviance
from ablations.fit.engine.ceiling_profile import CHI_SQUARED_95, NUM_ZOOMS, ZOOM_SHAPE
from ablations.fit.engine.family import DELAYED, FAMILIES, LATE_STARTS, LOG_LINEAR, SIGMOID, Family, delayed
from ablations.fit.engine.noise import AR1, LEAST_SD, Noise
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import (
    GRID_SHAPE,
    Nodes,
    Prior,
    best_linear_part,
    box_around,
    box_nodes,
    grid_nodes,
    node_deviances,
)
from ablations.fit.engine.zoom import COARSE
from ablations.fit.readings import Readings

PRIOR_OF_EQ_1 = 0.5
"""Prior of eq. 1, the law that published runs followed up to 100k GPU-hours (ScaleRL figure 1); the other families
share the rest. With equal priors the mixture's median has twice the error of eq. 1 if eq. 1 is true, else the same
error."""
LEAST_FOR_AICC = max(family.num_parameters for family in FAMILIES) + 3
"""Smallest number of readings for which AICc exists for every family."""
LEAST_WEIGHT = 0.01
"""Families with less weight are dropped; the tails of an interval hold more than twice this weight."""
LEAST_CANDIDATES = 200
"""Minimum number of draws to choose from for a family with little weight."""
NUM_CEILINGS = 65
LEAST_DENSITY_RATIO = 1e-300
ROUGH_SHAPE = (31, 17)
"""Nodes in p and q for the choice of an offset."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    """Another family: its draws replace eq. 1's draws in `rows`, in proportion to its weight."""

    family: Family
    rows: slice
    draws: Draws
    offset: float = 0.0
    """Start of the rise of a delayed family, in units of C_max."""

    @property
    def law(self) -> Family:
        """Family of the draws, with its own offset."""
        return delayed(self.offset) if self.offset else self.family

    @property
    def ceilings(self) -> np.ndarray:
        """A of every draw; 1 for the family without a ceiling."""
        return np.ones(self.draws.r.size) if self.family is LOG_LINEAR else self.draws.r + self.draws.a

    def curves(self, x: np.ndarray) -> np.ndarray:
        """Pass rate of every draw, r + a g(C; p, q), shape (num_draws, num_compute); x = ln(C / C_max)."""
        r, a, p, q = (values[:, None] for values in (self.draws.r, self.draws.a, self.draws.p, self.draws.q))
        return r + a * self.law.basis(x, p, q)


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
    weight: 0 for the family without a ceiling, infinite if other knowledge than the readings rules out 1."""

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
        others.append(Alternative(family=family, rows=rows, draws=draws, offset=own_offset))
        own = 0.0 if family is LOG_LINEAR else density_deviance_of_1(drawn)
        deviance_of_1[family.name] = math.inf if math.isinf(eq1_deviance_of_1) else own
    return Alternatives(weights=weights, others=tuple(others), deviance_of_1=deviance_of_1)


def aicc(mean_square: float, *, num_readings: int, autocorrelation: float, num_parameters: int) -> float:
    """n_eff ln(SSE / n) + 2 k + 2 k (k + 1) / (n - k - 1) (Hurvich and Tsai 1989), k with the noise variance in it.

    n_eff = n (1 - rho) / (1 + rho) is the number of independent readings as informative about a mean as n readings with
    lag-1 autocorrelation rho. The correction keeps n: 31 readings with rho = .6 count as 8, where it would be 30 for
    k = 5 and 13 for k = 4 and decide by itself. n is at least LEAST_FOR_AICC, so that the correction exists.
    """
    n, k = max(num_readings, LEAST_FOR_AICC), num_parameters
    n_eff = num_readings * (1 - autocorrelation) / (1 + autocorrelation)
    return n_eff * float(np.log(mean_square)) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def akaike_weights(criteria: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """w = prior exp(-(AICc - least AICc) / 2), scaled to add up to 1 (Burnham and Anderson 2002, §2.9, §6.4.5)."""
    weights = priors * np.exp(-0.5 * (criteria - criteria.min()))
    return weights / weights.sum()


def _offset(readings: Readings, noise: AR1) -> float:
    """The offset of the delayed family that fits best: of LATE_STARTS, then halving the distance twice."""
    prior = readings.anchors[0].prior(noise.run_variance)

    def misfit(offset: float) -> float:
        family = delayed(offset)
        nodes = box_nodes(family, readings.x, family.box(readings.x), ROUGH_SHAPE)
        (deviance,) = node_deviances(nodes, readings.score, variance=noise.variance, priors=[prior])
        return float(deviance.at(*best_linear_part(deviance)).min())

    found = {offset: misfit(offset) for offset in LATE_STARTS}
    for _ in range(2):
        tried = sorted(found)
        best = tried.index(min(found, key=lambda offset: found[offset]))
        for other in (best - 1, best + 1):
            if 0 <= other < len(tried):
                middle = (tried[best] + tried[other]) / 2
                found[middle] = misfit(middle)
    return min(found, key=lambda offset: found[offset])


def family_weights(readings: Readings, noise: AR1, offset: float = LATE_STARTS[0]) -> dict[str, float]:
    """Akaike weights by family name, in the order of FAMILIES; 0 below LEAST_WEIGHT."""
    num = readings.score.size + int(readings.anchors[0].is_informative)
    criteria = [
        aicc(
            least_squares(readings, noise, delayed(offset) if family.name == DELAYED else family) / num,
            num_readings=num,
            autocorrelation=noise.autocorrelation,
            num_parameters=family.num_parameters + 1,
        )
        for family in FAMILIES
    ]
    priors = np.full(len(FAMILIES), (1 - PRIOR_OF_EQ_1) / (len(FAMILIES) - 1))
    priors[FAMILIES.index(SIGMOID)] = PRIOR_OF_EQ_1
    names = (family.name for family in FAMILIES)
    weights = akaike_weights(np.array(criteria), priors)
    weights[weights < LEAST_WEIGHT] = 0.0
    return dict(zip(names, (weights / weights.sum()).tolist(), strict=True))


def least_squares(readings: Readings, noise: AR1, family: Family) -> float:
    """Sum of squared residuals of the family's best curve, plus the noise variance times the penalty of the step-0
    reading on its R_0 (`anchor_deviance`).

    A grid is zoomed three times onto its best node, to better than a thousandth (0.03 in AICc).
    """
    x, y = readings.x, readings.score
    variance, run_variance = noise.variance, noise.run_variance
    at_reading = anchor_deviance(readings.anchors, readings.anchors[0].value, run_variance)
    priors = [anchor.prior(run_variance) for anchor in readings.anchors]

    def least(nodes: Nodes) -> tuple[float, int, Prior]:
        """The least square of the nodes, its node, and the prior of R_0 that gives it."""
        found = []
        deviances = node_deviances(nodes, y, variance=variance, priors=priors)
        for prior, deviance in zip(priors, deviances, strict=True):
            r, a = best_linear_part(deviance)
            misfit = deviance.at(r, a)
            best = int(np.argmin(misfit))
            R_0 = float(r[best])
            square = variance * (float(misfit[best]) - (R_0 - prior.value) ** 2 / prior.variance)
            square += variance * (anchor_deviance(readings.anchors, R_0, run_variance) - at_reading)
            found.append((square, best, prior))
        return min(found, key=lambda one: one[0])

    # The grid of a delayed family is its own for every curve, so it is not worth keeping.
    shape = ROUGH_SHAPE if family.name == DELAYED else GRID_SHAPE
    box = family.box(x)
    nodes = box_nodes(family, x, box, shape) if family.name == DELAYED else grid_nodes(family, x)
    square, best, prior = least(nodes)
    priors = [prior]
    for _ in range(NUM_ZOOMS):
        box = box_around(nodes, best, box, shape, family.box(x), margin=1.5)
        nodes, shape = box_nodes(family, x, box, ZOOM_SHAPE), ZOOM_SHAPE
        square, best, _ = least(nodes)
    return max(square, y.size * LEAST_SD**2)


def density_deviance_of_1(draws: Draws) -> float:
    """Twice the log of the highest posterior density of the ceiling over that at 1."""
    density = draws.ceiling_density(np.linspace(float(np.quantile(draws.r + draws.a, 0.025)), 1, NUM_CEILINGS))
    return -2 * math.log(max(float(density[-1] / density.max()), LEAST_DENSITY_RATIO))
