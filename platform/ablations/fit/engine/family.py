"""Families of curves r + a g(C; p, q): linear in (r, a), with at most two shape parameters searched on a grid.

Eq. 1 is the law to fit. The other families show how much a forecast depends on it: over 46 published learning curves no
family was best everywhere, and beyond twice the fitted range their average beat each of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Box = tuple[tuple[float, float], tuple[float, float]]
NO_SHAPE = (0.0, 0.0)
"""Range of a shape parameter that the family does not have."""

DELAYED = "delayed eq. 1"
LATE_STARTS = (0.015, 0.03, 0.05, 0.08, 0.11, 0.15, 0.2)
"""Starts of a late rise to try, in units of C_max."""
LEAST_SINCE = 1e-30
"""Smallest compute since the start of a rise, in units of C_max, where the curve is still at R_0."""
LN_B_MEAN, LN_B_SD = np.log(1.75), 0.35
"""Prior of ln B, centred on the published fits (ScaleRL table 1: B from 1.09 to 2.44)."""


def flat_prior(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """A uniform prior over the box: 0 for every shape."""
    return np.zeros(np.broadcast(p, q).shape)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of curves: basis, box to search, prior.

    `x` is ln(C / C_max), with C_max the largest fitted compute. `p` and `q` broadcast against `x`, so one call gives a
    whole grid of shapes. g is 0 at C = 0, so r is R_0, and rises to 1, so r + a is A.
    """

    name: str
    num_parameters: int
    """Number of parameters of the curve, including (r, a)."""
    basis: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    box: Callable[[np.ndarray], Box]
    log_prior: Callable[[np.ndarray, np.ndarray], np.ndarray] = flat_prior


@dataclass(frozen=True, kw_only=True)
class SmoothFamily(Family):
    """A family whose best curve can be found to the last digit (`projection.solve`)."""

    gradient: Callable[[np.ndarray, float, float], tuple[np.ndarray, np.ndarray]]
    """dg/dp and dg/dq."""


def softplus(z: np.ndarray) -> np.ndarray:
    """ln(1 + e^z): `np.logaddexp(0, z)` at a third of its time."""
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def sigmoid_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Fraction of the total gain reached at compute C.

    g = 1 / (1 + (C_mid / C)^B), p = ln C_mid, q = ln B (ScaleRL eq. 1, arXiv 2510.13786).
    """
    odds = np.asarray(np.exp(q) * (p - x))
    with np.errstate(over="ignore"):
        np.exp(odds, out=odds)
    odds += 1
    return np.divide(1, odds, out=odds)


def sigmoid_gradient(x: np.ndarray, p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """dg/dp = -B g (1 - g) and dg/dq = B (ln C - p) g (1 - g) of `sigmoid_basis`."""
    B = np.exp(q)
    g = 1 / (1 + np.exp(B * (p - x)))
    spread = g * (1 - g)
    return -B * spread, B * (x - p) * spread


def sigmoid_box(x: np.ndarray) -> Box:
    """C_mid from 0.1 times the smallest to 30 times the largest compute, B from 0.3 to 6 (table 1 has 1.09 to 2.44)."""
    return (x.min() + np.log(0.1), x.max() + np.log(30)), (np.log(0.3), np.log(6))


def sigmoid_log_prior(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """ln B ~ N(ln 1.75, 0.35^2), ln C_mid flat."""
    return -0.5 * ((q - LN_B_MEAN) / LN_B_SD) ** 2 + 0 * p


def power_law_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """g = 1 - (1 + C / C_s)^-b, p = ln C_s, q = ln b: for C >> C_s the power law A - D / C^b (ScaleRL A.4)."""
    return -np.expm1(-np.exp(q) * softplus(x - p))


def power_law_box(x: np.ndarray) -> Box:
    """C_s from 0.01 times the smallest to 30 times the largest compute, b from 0.1 to 10."""
    return (x.min() + np.log(0.01), x.max() + np.log(30)), (np.log(0.1), np.log(10))


def logistic_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The logistic curve in linear compute, s = 1 / (1 + exp(-k (C - c))), as g = (s - s(0)) / (1 - s(0)).

    C and c = p in units of C_max, q = ln k.
    """
    k, C = np.exp(q), np.exp(x)
    return -np.expm1(softplus(-k * p) - softplus(k * (C - p)))


def logistic_box(x: np.ndarray) -> Box:
    """The inflection point between C = 0 and 3 C_max, k between 0.3 / C_max and 50 / C_max."""
    return (0.0, 3.0), (np.log(0.3), np.log(50))


def weibull_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """g = 1 - exp(-(C / C_s)^b), p = ln C_s, q = ln b."""
    with np.errstate(over="ignore"):
        return -np.expm1(-np.exp(np.exp(q) * (x - p)))


def weibull_gradient(x: np.ndarray, p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """With h = (C / C_s)^b: dg/dp = -b h e^-h, dg/dq = b (x - p) h e^-h."""
    b = np.exp(q)
    h = np.exp(np.minimum(b * (x - p), 700))
    slope = b * h * np.exp(-h)
    return -slope, (x - p) * slope


def exponential_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """g = 1 - exp(-C / C_s), p = ln C_s."""
    return weibull_basis(x, p, np.zeros_like(q))


def exponential_box(x: np.ndarray) -> Box:
    """C_s from 0.1 times the smallest to 30 times the largest compute."""
    return sigmoid_box(x)[0], NO_SHAPE


def log_linear_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """g = ln(1 + C / C_s) / ln(1 + C_max / C_s), p = ln C_s: no asymptote; r + a is the level at C_max."""
    return softplus(x - p) / softplus(-p) + 0 * q


@lru_cache(maxsize=256)
def delayed(offset: float) -> "Family":
    """Eq. 1 of the compute since a start at `offset` times C_max; C_mid too counts from there.

    A run that warms up, or learns a format first, begins to rise late.
    """

    def since(x: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(np.exp(x) - offset, LEAST_SINCE))

    return Family(
        name=DELAYED,
        num_parameters=4,
        basis=lambda x, p, q: sigmoid_basis(since(x), p, q),
        box=sigmoid_box,
        log_prior=sigmoid_log_prior,
    )


SIGMOID = SmoothFamily(
    name="sigmoid",
    num_parameters=4,
    basis=sigmoid_basis,
    gradient=sigmoid_gradient,
    box=sigmoid_box,
    log_prior=sigmoid_log_prior,
)
WEIBULL = SmoothFamily(
    name="Weibull", num_parameters=4, basis=weibull_basis, gradient=weibull_gradient, box=sigmoid_box
)
LOG_LINEAR = Family(name="log-linear", num_parameters=3, basis=log_linear_basis, box=exponential_box)
FAMILIES = (
    SIGMOID,
    Family(name="power law", num_parameters=4, basis=power_law_basis, box=power_law_box),
    Family(name="logistic in compute", num_parameters=4, basis=logistic_basis, box=logistic_box),
    Family(name="exponential", num_parameters=3, basis=exponential_basis, box=exponential_box),
    WEIBULL,
    delayed(LATE_STARTS[0]),
    LOG_LINEAR,
)
"""All families, eq. 1 first; `alternatives` chooses the offset of the delayed one."""
