"""The weight of each family of curves, by how well its best curve fits and how many parameters it has."""

from collections.abc import Sequence

import numpy as np

from ablations.fit.engine.anchor import anchor_deviance
from ablations.fit.engine.ceiling_profile import NUM_ZOOMS, ZOOM_SHAPE
from ablations.fit.engine.family import DELAYED, FAMILIES, LATE_STARTS, SIGMOID, Family, delayed
from ablations.fit.engine.noise import AR1, LEAST_SD
from ablations.fit.engine.projection import (
    GRID_SHAPE,
    ROUGH_SHAPE,
    best_nodes,
    box_around,
    box_nodes,
    grid_nodes,
    rough_nodes,
)
from ablations.fit.readings import Readings

PRIOR_OF_EQ_1 = 0.5
"""Prior of eq. 1, the law that published runs followed up to 100k GPU-hours (ScaleRL figure 1); the other families
share the rest. With equal priors the mixture's median has twice the error of eq. 1 if eq. 1 is true, else the same
error."""
LEAST_FOR_AICC = max(family.num_parameters for family in FAMILIES) + 3
"""Smallest number of readings for which AICc exists for every family."""
LEAST_WEIGHT = 0.01
"""Families with less weight are dropped; each tail of an interval has more than twice this weight."""


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


def family_weights(readings: Readings, noise: AR1, offset: float = LATE_STARTS[0]) -> dict[str, float]:
    """Akaike weights by family name, in the order of FAMILIES; 0 below LEAST_WEIGHT."""
    num = readings.score.size + int(readings.anchors[0].is_informative)
    families = [delayed(offset) if family.name == DELAYED else family for family in FAMILIES]
    criteria = [
        aicc(
            square / num,
            num_readings=num,
            autocorrelation=noise.autocorrelation,
            num_parameters=family.num_parameters + 1,
        )
        for family, square in zip(FAMILIES, least_squares(readings, noise, families), strict=True)
    ]
    priors = np.full(len(FAMILIES), (1 - PRIOR_OF_EQ_1) / (len(FAMILIES) - 1))
    priors[FAMILIES.index(SIGMOID)] = PRIOR_OF_EQ_1
    names = (family.name for family in FAMILIES)
    weights = akaike_weights(np.array(criteria), priors)
    weights[weights < LEAST_WEIGHT] = 0.0
    return dict(zip(names, (weights / weights.sum()).tolist(), strict=True))


def least_squares(readings: Readings, noise: AR1, families: Sequence[Family]) -> list[float]:
    """Sum of squared residuals of each family's best curve, plus the noise variance times the penalty of the step-0
    reading on its R_0 (`anchor_deviance`).

    A grid is zoomed three times onto its best node, to better than a thousandth (0.03 in AICc).
    """
    x, y = readings.x, readings.score
    variance, run_variance = noise.variance, noise.run_variance
    at_reading = anchor_deviance(readings.anchors, readings.anchors[0].value, run_variance)
    priors = [anchor.prior(run_variance) for anchor in readings.anchors]
    boxes = [family.box(x) for family in families]
    shapes = [ROUGH_SHAPE if family.name == DELAYED else GRID_SHAPE for family in families]
    grids = [rough_nodes(one, x) if one.name == DELAYED else grid_nodes(one, x) for one in families]

    def least() -> tuple[np.ndarray, np.ndarray]:
        """The least square of each grid under each prior, and its node; both (num_priors, num_families)."""
        nodes, R_0, misfits = best_nodes(grids, y, variance=variance, priors=priors)
        off = np.array([(R - prior.value) ** 2 / prior.variance for R, prior in zip(R_0, priors, strict=True)])
        penalty = anchor_deviance(readings.anchors, R_0, run_variance) - at_reading
        return variance * (misfits - off + penalty), nodes

    squares, nodes = least()
    chosen = squares.argmin(axis=0), np.arange(len(families))
    for _ in range(NUM_ZOOMS):
        boxes = [
            box_around(grid, best, box, shape, family.box(x), margin=1.5)
            for family, grid, best, box, shape in zip(families, grids, nodes[chosen], boxes, shapes, strict=True)
        ]
        shapes = [ZOOM_SHAPE] * len(families)
        grids = [box_nodes(family, x, box, ZOOM_SHAPE) for family, box in zip(families, boxes, strict=True)]
        squares, nodes = least()
    return np.maximum(squares[chosen], y.size * LEAST_SD**2).tolist()
