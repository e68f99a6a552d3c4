"""Simulated and fitted runs of a possible study: of its reference, and of a variant that differs.

A variant is slower, or ends lower, by a difference d:

    slower        R(C) = R_ref(C / e^d)                                        e^d times the compute to every pass rate
    ends lower    R(C) = R_0 + (R_ref(C) - R_0) (A - d - R_0) / (A - R_0)      as fast towards a ceiling d lower

Such a variant is known less well than the reference: its readings end nearer to the bend, or rise less.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ablations.answers.known import KnownScale, Law
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit

DifferenceKind = Literal["slower", "ends lower"]

NUM_CURVES = 20
"""Number of simulated runs of the reference, and of each variant."""
LEAST_DIFFERENCE = 0.01
"""Variants are simulated at this difference times powers of 2, so that designs share them."""
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
    _fits: dict[tuple[DifferenceKind, float], list[Fit]] = field(default_factory=dict)

    @property
    def reference(self) -> list[Fit]:
        """NUM_CURVES runs of the reference."""
        return self._simulated("slower", 0.0, self.known.law)

    def variant(self, kind: DifferenceKind, difference: float) -> list[Fit]:
        """NUM_CURVES runs of a variant that differs by about `difference`, in ln for a slower one."""
        d = grid_difference(difference)
        law = slower(self.known.law, d) if kind == "slower" else lower(self.known.law, d)
        return self._simulated(kind, d, law)

    def _simulated(self, kind: DifferenceKind, difference: float, law: Law) -> list[Fit]:
        """Simulate a variant; all share one noise, so that differences between them contain less chance."""
        key = (kind, difference)
        if key not in self._fits:
            seed = SEED if difference == 0 else [SEED, 1]
            expected = expected_curve(law, self.compute, self.samples)
            self._fits[key] = simulated_fits(expected, self.known, self.settings, np.random.default_rng(seed))
        return self._fits[key]


def slower(law: Law, difference: float) -> Law:
    """The law of a variant that needs e^d times the compute to every pass rate."""
    return lambda compute: law(compute / math.exp(difference))


def lower(law: Law, difference: float) -> Law:
    """The law of a variant with a ceiling d lower, no lower than R_0."""
    R_0, A = (float(end) for end in law(np.array([0.0, np.inf])))
    share = max(A - difference - R_0, 0.0) / (A - R_0)
    return lambda compute: R_0 + (law(compute) - R_0) * share


def grid_difference(difference: float) -> float:
    """The nearest difference at which variants are simulated."""
    return LEAST_DIFFERENCE * 2.0 ** max(round(math.log2(difference / LEAST_DIFFERENCE)), 0)


def expected_curve(law: Law, compute: np.ndarray, samples: float | None) -> Curve:
    """The readings of a run without noise; `samples` is the effective number of independent samples per reading."""
    score = np.clip(law(compute), 0.0, 1.0)
    of_reading = None if samples is None else np.full(compute.size, samples)
    return Curve(name="expected", compute=compute, score=score, samples=of_reading)


def simulated_fits(expected: Curve, known: KnownScale, settings: FitSettings, rng: np.random.Generator) -> list[Fit]:
    """Fits of NUM_CURVES runs whose readings scatter about the expected ones with the known noise."""
    sampling = 0.0 if expected.samples is None else expected.score * (1 - expected.score) / expected.samples
    fits = []
    for _ in range(NUM_CURVES):
        wander = autoregressive(rng.standard_normal(expected.compute.size), known.autocorrelation)
        noise = known.run_sd * wander + np.sqrt(sampling) * rng.standard_normal(expected.compute.size)
        score = np.clip(expected.score + noise, 0.0, 1.0)
        curve = Curve(name="simulated", compute=expected.compute, score=score, samples=expected.samples)
        fits.append(_fitted(curve, settings))
    return fits


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
