"""Eq. 1's draws for one curve, without verdict or ceiling: what a forecast needs, at a third of the price of a fit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ablations.fit.curve import Curve
from ablations.fit.engine.family import SIGMOID
from ablations.fit.options import FitSettings
from ablations.fit.readings import Readings


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveSet:
    """Draws of eq. 1's parameters, one curve per entry."""

    A: np.ndarray
    B: np.ndarray
    C_mid: np.ndarray
    R_0: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class LawFit:
    """The fitted readings of a curve, and the curves of eq. 1 that agree with them."""

    curve: Curve
    settings: FitSettings
    """Settings of the fit."""
    readings: Readings
    """The fitted readings; with Huber's loss, outliers are pulled towards the curve."""
    draws: CurveSet
    """Equally likely draws from the posterior."""

    @property
    def window(self) -> tuple[float, float]:
        """Compute of the first and of the last reading fitted."""
        return float(self.readings.compute[0]), float(self.readings.compute[-1])

    def predict_draws(self, compute: ArrayLike, *, every: int = 1) -> np.ndarray:
        """Pass rate of every draw, or of one in `every`, at each compute, shape (num_draws, num_compute)."""
        draws = (values[::every, None] for values in vars(self.draws).values())
        return eq1(np.atleast_1d(compute), *draws)


def eq1(compute: np.ndarray, A: np.ndarray, B: np.ndarray, C_mid: np.ndarray, R_0: np.ndarray) -> np.ndarray:
    """R_C = R_0 + (A - R_0) / (1 + (C_mid / C)^B) (ScaleRL eq. 1, arXiv 2510.13786)."""
    # At C = 0, ln C = -inf, where the basis is 0 as it should be.
    with np.errstate(divide="ignore", over="ignore"):
        rate = SIGMOID.basis(np.log(compute), np.log(C_mid), np.log(B))
    rate *= A - R_0
    rate += R_0
    return rate
