"""The readings that enter a fit, with outliers made harmless."""

from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.projection import Prior, solve

HUBER_MADS = 1.345 * 1.4826
"""Limit of squared residuals, in median absolute deviations: 95 % efficiency under normal noise."""
MAX_HUBER_STEPS = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class Readings:
    """The readings of a window in the form that is fitted: after step 0, which is in `anchors`, and before a collapse.

    `compute` and `score` have shape (num_points,); `sampling_variance` is the mean variance of a score due to its
    finite number of samples, 0 if unknown.
    """

    compute: np.ndarray
    score: np.ndarray
    sampling_variance: float
    anchors: tuple[Anchor, ...]

    def over(self, ceiling: float) -> "Readings":
        """Convert the readings to units of the highest possible pass rate."""
        return replace(
            self,
            score=self.score / ceiling,
            sampling_variance=self.sampling_variance / ceiling**2,
            anchors=tuple(
                replace(anchor, value=anchor.value / ceiling, own_variance=anchor.own_variance / ceiling**2)
                for anchor in self.anchors
            ),
        )

    @property
    def x(self) -> np.ndarray:
        """ln(C / C_max)."""
        return np.log(self.compute / self.compute[-1])


def huberised(x: np.ndarray, y: np.ndarray, *, tolerance: float = 1e-8) -> np.ndarray:
    """Readings whose least-squares fit is Huber's M-estimate for `y`: y* = R(x) + clip(y - R(x), +-k) / m.

    k is HUBER_MADS times the median absolute residual, m the fraction of residuals that are not clipped. The division
    gives y* the scatter that the curve's uncertainty calls for (Huber and Ronchetti 2009, §7.6: pseudo-values).
    The iteration ends once no reading moves by `tolerance`.
    """
    pseudo, fitted, k = y, y, 0.0
    for _ in range(MAX_HUBER_STEPS):
        fitted = pseudo - solve(SIGMOID, x, pseudo, variance=1.0, prior=Prior()).residuals
        k = HUBER_MADS * float(np.median(np.abs(y - fitted)))
        before, pseudo = pseudo, fitted + np.clip(y - fitted, -k, k)
        if np.abs(pseudo - before).max() < tolerance:
            break
    unclipped = max(float(np.mean(np.abs(y - fitted) <= k)), 0.5)
    return fitted + np.clip(y - fitted, -k, k) / unclipped
