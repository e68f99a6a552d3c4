"""Simulates and fits runs of a planned study: of its reference, and of a slower variant.

    R(C) = R_ref(C / SLOWER)                                                SLOWER times the compute to every pass rate

A slower variant is known less well than the reference, since its readings end nearer to the bend.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ablations.answers.known_scale import KnownScale, Law
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit

NUM_CURVES = 5
"""Number of simulated runs of the reference, and of the variant. Their scatter is known to a quarter."""
SLOWER = 1.3
"""Factor in compute of the variant: about the factor that three seeds detect at the paper's scale."""
SEED = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedRuns:
    """Fits of runs with the known law and noise, without run-to-run differences."""

    known: KnownScale
    compute: np.ndarray
    """Compute of the readings of one run, step 0 first."""
    samples: float | None
    """Effective number of independent samples per reading."""
    settings: FitSettings

    @cached_property
    def reference(self) -> list[Fit]:
        """NUM_CURVES runs of the reference."""
        return self._simulated(self.known.law)

    @cached_property
    def variant(self) -> list[Fit]:
        """NUM_CURVES runs of the slower variant."""
        return self._simulated(lambda compute: self.known.law(compute / SLOWER))

    def _simulated(self, law: Law) -> list[Fit]:
        """Runs whose readings scatter about the law with the known noise; run i of both recipes has the same noise."""
        expected = expected_curve(law, self.compute, self.samples)
        rng = np.random.default_rng(SEED)
        sampling = 0.0 if expected.samples is None else expected.score * (1 - expected.score) / expected.samples
        fits = []
        for number in range(NUM_CURVES):
            wander = autoregressive(rng.standard_normal(expected.compute.size), self.known.autocorrelation)
            noise = self.known.run_sd * wander + np.sqrt(sampling) * rng.standard_normal(expected.compute.size)
            score = np.clip(expected.score + noise, 0.0, 1.0)
            curve = replace(expected, score=score, start=f"seed {number}")
            fits.append(_fitted(curve, self.settings))
        return fits


def expected_curve(law: Law, compute: np.ndarray, samples: float | None) -> Curve:
    """The readings of a run without noise; `samples` is the effective number of independent samples per reading."""
    score = np.clip(law(compute), 0.0, 1.0)
    of_reading = None if samples is None else np.full(compute.size, samples)
    return Curve(name="expected", compute=compute, score=score, samples=of_reading)


def _fitted(curve: Curve, settings: FitSettings) -> Fit:
    """Fit a curve, without the task's ceiling if the curve lies above it, by chance or because the law was only
    assumed.
    """
    try:
        return fit_with(curve, settings, through_collapse=True)
    except AblationsError:
        return fit_with(curve, replace(settings, ceiling=None), through_collapse=True)


def autoregressive(white: np.ndarray, rho: float) -> np.ndarray:
    """AR(1) noise of variance 1 from white noise: x_i = rho x_i-1 + sqrt(1 - rho^2) w_i."""
    x = white.copy()
    for i in range(1, x.size):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * white[i]
    return x
