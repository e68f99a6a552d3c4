"""The prior of R_0 from the reading before RL.

The reading at compute 0 is a datum for R_0, but does not always follow the law: after an initial transient the reading
may be 0.1 off, and a fit tied to it has an error of 0.04 in A. So the default is a spike and a slab.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablations.fit.engine import R0Mode
from ablations.fit.engine.projection import Prior

SLAB_PROBABILITY = 0.3
SLAB_SD = 0.08
"""Prior belief that three in ten step-0 readings lie off the law by about this much, because of an early transient."""
FIXED_SHARE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """One way to tie R_0 to the step-0 reading: R_0 ~ N(value, own_variance + run_share * run-noise variance).

    Anchor(value=0.31, own_variance=1.3e-5, run_share=1.0, probability=0.7)

    An infinite variance carries no information.
    """

    value: float = 0.0
    own_variance: float = np.inf
    run_share: float = 0.0
    probability: float = 1.0

    @property
    def is_informative(self) -> bool:
        return bool(np.isfinite(self.own_variance))

    def variance(self, run_variances: np.ndarray) -> np.ndarray:
        """Variance of R_0 about `value`, for each variance of the run noise."""
        return self.own_variance + self.run_share * run_variances

    def prior(self, run_variance: float) -> Prior:
        """The prior of R_0 for one variance of the run noise."""
        return Prior(value=self.value, variance=float(self.variance(np.array(run_variance))))


def anchor_deviance(anchors: Sequence[Anchor], r: np.ndarray | float, run_variance: float) -> np.ndarray:
    """-2 ln of the prior density at each R_0 = `r`, for a mixture of Gaussians; 0 if the anchors are uninformative."""
    if not anchors[0].is_informative:
        return np.zeros(np.shape(r))
    variances = np.array([anchor.prior(run_variance).variance for anchor in anchors])
    values, probabilities = (
        np.array([getattr(anchor, name) for anchor in anchors]) for name in ("value", "probability")
    )
    parts = np.log(probabilities) - 0.5 * np.log(variances) - 0.5 * (np.asarray(r)[..., None] - values) ** 2 / variances
    return -2 * np.logaddexp.reduce(parts, axis=-1)


def anchors(score: float | None, sampling_variance: float, mode: R0Mode) -> list[Anchor]:
    """The anchors of a mode; without a reading every mode is "free". `sampling_variance` is that of finite samples."""
    if score is None or mode == "free":
        return [Anchor()]
    if mode == "fixed":
        # A spike far below the noise lets all modes share one closed form.
        return [Anchor(value=score, own_variance=0.0, run_share=FIXED_SHARE)]
    off_the_law = sampling_variance + SLAB_SD**2
    return [
        Anchor(value=score, own_variance=sampling_variance, run_share=1.0, probability=1 - SLAB_PROBABILITY),
        Anchor(value=score, own_variance=off_the_law, run_share=1.0, probability=SLAB_PROBABILITY),
    ]
