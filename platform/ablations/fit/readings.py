"""The readings that enter a fit."""

from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.engine.anchor import Anchor


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
