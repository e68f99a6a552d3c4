"""The other families on the readings of a fit: how well each fits beside eq. 1, and draws of each by its weight.

Within the readings all families that fit say the same. Where a curve ends nobody knows which holds, so the ceiling and
everything beyond the readings are averaged over them.
"""

from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.engine.anchor import anchor_deviance
from ablations.fit.engine.ceiling_profile import NUM_ZOOMS, OPEN_DENSITY, ZOOM_SHAPE
from ablations.fit.engine.family import FAMILIES, LOG_LINEAR, SIGMOID, Family
from ablations.fit.engine.noise import AR1, LEAST_SD, Noise
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import (
    GRID_SHAPE,
    Nodes,
    Prior,
    best_linear_part,
    box_nodes,
    cells_around,
    grid_nodes,
    node_deviances,
)
from ablations.fit.engine.zoom import COARSE
from ablations.fit.readings import Readings

PRIOR_OF_EQ_1 = 0.5
"""The law that published runs followed up to 100k GPU-hours (ScaleRL figure 1); the other families share the rest.
With equal priors the mixture's median errs twice as much as eq. 1 where that is true, and as much where it is not."""
LEAST_FOR_AICC = max(family.num_parameters for family in FAMILIES) + 3
"""AICc of every family exists from here on."""
LEAST_WEIGHT = 0.01
"""A family with less is left out: an interval's tails are more than twice that."""
LEAST_CANDIDATES = 200
"""Draws from which those of a family with little weight are taken."""
NUM_CEILINGS = 33


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    """Another family: draws of it that stand for eq. 1's draws in `rows`, as many as it weighs."""

    family: Family
    rows: slice
    draws: Draws
    is_open: bool
    """Whether the readings allow it a ceiling of 1; always for the family that has no ceiling."""

    @property
    def ceilings(self) -> np.ndarray:
        """A of every draw; 1 for the family that has no ceiling."""
        return np.ones(self.draws.r.size) if self.family is LOG_LINEAR else self.draws.r + self.draws.a


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternatives:
    """Weights of all families and draws of those beside eq. 1, in the order of FAMILIES.

    Alternatives(weights={"sigmoid": 0.62, "power law": 0.05, ..., "Weibull": 0.3}, others=(Alternative(...), ...))

    Draw i of two fits is of the same family as far as their weights agree, as all keep that order: differences and
    means are taken under one law, and what several seeds cannot know of it does not average out.
    """

    weights: dict[str, float]
    """Akaike weights by name of the family; they add up to 1."""
    others: tuple[Alternative, ...]

    def times(self, unit: float) -> "Alternatives":
        """The same in pass rate where it was in units of `unit`."""
        scaled = [
            replace(each, draws=each.draws._replace(r=unit * each.draws.r, a=unit * each.draws.a))
            for each in self.others
        ]
        return replace(self, others=tuple(scaled))

    @property
    def eq1_weight(self) -> float:
        """The weight of eq. 1."""
        return self.weights[SIGMOID.name]


def alternatives(
    readings: Readings, *, noise: AR1, noises: Noise, variance: float, num_draws: int, can_be_open: bool
) -> Alternatives:
    """Every family beside eq. 1 fitted to the readings, with as many of `num_draws` as it weighs.

    `noise` is the one that eq. 1 found, `noises` are those to weigh, `variance` is a rough one of a reading.
    """
    weights = family_weights(readings, noise)
    ends = np.rint(num_draws * np.cumsum(list(weights.values()))).astype(int)
    others = []
    for family, start, end in zip(FAMILIES[1:], ends[:-1], ends[1:], strict=True):
        if end <= start:
            continue
        num = int(end - start)
        drawn = sample(
            family,
            readings.x,
            readings.score,
            noise=noises,
            anchors=readings.anchors,
            variance=variance,
            num_draws=max(num, LEAST_CANDIDATES),
            fineness=COARSE,
        )
        is_open = can_be_open and (family is LOG_LINEAR or _is_open(drawn))
        rows = slice(int(start), int(end))
        others.append(Alternative(family=family, rows=rows, draws=drawn.of(np.arange(num)), is_open=is_open))
    return Alternatives(weights=weights, others=tuple(others))


def aicc(mean_square: float, *, num_readings: int, autocorrelation: float, num_parameters: int) -> float:
    """n_eff ln(SSE / n) + 2 k + 2 k (k + 1) / (n - k - 1) (Hurvich and Tsai 1989), k with the noise variance in it.

    n_eff = n (1 - rho) / (1 + rho) independent readings say as much of a mean as n of lag-1 autocorrelation rho. The
    correction keeps n: 31 readings with rho = .6 count as 8, and at 8 it is 30 for k = 5 and 13 for k = 4, which would
    decide whatever the readings say. n is no less than LEAST_FOR_AICC, so that it exists.
    """
    n, k = max(num_readings, LEAST_FOR_AICC), num_parameters
    n_eff = num_readings * (1 - autocorrelation) / (1 + autocorrelation)
    return n_eff * float(np.log(mean_square)) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def akaike_weights(criteria: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """w = prior exp(-(AICc - least AICc) / 2), scaled to add up to 1 (Burnham and Anderson 2002, §2.9, §6.4.5)."""
    weights = priors * np.exp(-0.5 * (criteria - criteria.min()))
    return weights / weights.sum()


def family_weights(readings: Readings, noise: AR1) -> dict[str, float]:
    """Akaike weight of every family by name, in the order of FAMILIES; 0 for those that have next to none."""
    num = readings.score.size + int(readings.anchors[0].is_informative)
    criteria = [
        aicc(
            least_squares(readings, noise, family) / num,
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
    """Squared residuals of the family's best curve, plus the noise's variance times what the reading at step 0 speaks
    against its R_0, as far as it may lie on the law at all (`anchor_deviance`).

    On a grid zoomed three times onto its best node: to better than a thousandth, which is 0.03 in AICc.
    """
    x, y = readings.x, readings.score
    variance, run_variance = noise.variance, noise.run_variance
    at_reading = anchor_deviance(readings.anchors, readings.anchors[0].value, run_variance)
    priors = [anchor.prior(run_variance) for anchor in readings.anchors]

    def least(nodes: Nodes) -> tuple[float, int, Prior]:
        """The least square of the nodes, its node, and the prior of R_0 under which it is."""
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

    nodes, box, shape = grid_nodes(family, x), family.box(x), GRID_SHAPE
    square, best, prior = least(nodes)
    priors = [prior]
    for _ in range(NUM_ZOOMS):
        box = cells_around(float(nodes.p[best]), float(nodes.q[best]), box, shape, family.box(x))
        nodes, shape = box_nodes(family, x, box, ZOOM_SHAPE), ZOOM_SHAPE
        square, best, _ = least(nodes)
    return max(square, y.size * LEAST_SD**2)


def _is_open(draws: Draws) -> bool:
    """Whether a ceiling of 1 is hardly less likely than the likeliest. The shapes of these families have flat priors,
    so that the readings alone say so.
    """
    density = draws.ceiling_density(np.linspace(float(np.quantile(draws.r + draws.a, 0.025)), 1, NUM_CEILINGS))
    return bool(density[-1] > OPEN_DENSITY * density.max())
