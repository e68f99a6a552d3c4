"""Families of curves r + a g(C; p, q): linear in (r, a), with two shape parameters that are searched on a grid."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Box = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the engine must know of a family: its basis, the basis's derivatives and where to look.

    `x` is ln C. `p` and `q` broadcast against it, so one call gives a whole grid of shapes. g rises from 0 at C = 0
    to 1.
    """

    basis: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray, float, float], tuple[np.ndarray, np.ndarray]]
    box: Callable[[np.ndarray], Box]


def sigmoid_basis(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Share of the total gain that is reached at compute C.

    g = 1 / (1 + (C_mid / C)^B), p = ln C_mid, q = ln B (ScaleRL eq. 1, arXiv 2510.13786).
    """
    return 1 / (1 + np.exp(np.exp(q) * (p - x)))


def sigmoid_gradient(x: np.ndarray, p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """dg/dp = -B g (1 - g) and dg/dq = B (ln C - p) g (1 - g) of `sigmoid_basis`."""
    B = np.exp(q)
    g = 1 / (1 + np.exp(B * (p - x)))
    spread = g * (1 - g)
    return -B * spread, B * (x - p) * spread


def sigmoid_box(x: np.ndarray) -> Box:
    """C_mid from 0.1 times the least to 30 times the largest compute, B from 0.3 to 6 (table 1 has 1.09 to 2.44)."""
    return (x.min() + np.log(0.1), x.max() + np.log(30)), (np.log(0.3), np.log(6))


SIGMOID = Family(basis=sigmoid_basis, gradient=sigmoid_gradient, box=sigmoid_box)
