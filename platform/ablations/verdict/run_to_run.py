"""How much two runs of one recipe differ: one standard deviation for all variants of a sweep, in pass rate.

The seeds of one variant say little of it, those of nine say enough. So all of them count, with a prior. Where no
variant has a second seed, tau is assumed to be PRIOR_SD:

    y_vi = mu_v + e_vi,  e_vi ~ N(0, tau^2 + s_vi^2)      seed i of variant v; s_vi is the error of its own readings
    tau^2 ~ scaled inverse chi-squared (PRIOR_FREEDOM, PRIOR_SD^2)

The posterior of tau is a sum over a grid (Gelman et al., Bayesian Data Analysis, §5.4 and §2.6).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

PRIOR_SD = 0.0075
"""Half the +-0.015 within which three ScaleRL runs lay (ScaleRL §4)."""
PRIOR_FREEDOM = 2.0
"""The prior counts as much as three seeds of one variant: tau lies within a factor of 0.5 to 6.3 of PRIOR_SD."""
GRID = np.geomspace(5e-4, 0.2, 241)


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """What the seeds of one variant say of tau: Repeats(squares=0.00031, freedom=2, own_variance=0.00004)."""

    squares: float
    """Sum of squared differences from their mean."""
    freedom: int
    """Seeds less one."""
    own_variance: float
    """Mean variance of one seed's number given its readings, s^2."""

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray, own_variances: Sequence[float]) -> "Repeats":
        """The seeds of a variant, a number and its variance each."""
        y = np.asarray(values, dtype=float)
        return cls(
            squares=float(np.sum((y - y.mean()) ** 2)),
            freedom=y.size - 1,
            own_variance=float(np.mean(own_variances)),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RunToRun:
    """The posterior of tau: RunToRun(values=GRID, weights=array([...]), freedom=18), in ascending values."""

    values: np.ndarray
    weights: np.ndarray
    freedom: int
    """Degrees of freedom that the seeds have given it; with none it is assumed."""

    @property
    def sd(self) -> float:
        """The median of tau."""
        return float(np.interp(0.5, np.cumsum(self.weights), self.values))

    def draws(self, num_draws: int) -> np.ndarray:
        """Equally likely tau, shuffled."""
        quantiles = (np.arange(num_draws) + 0.5) / num_draws
        return np.random.default_rng(1).permutation(np.interp(quantiles, np.cumsum(self.weights), self.values))

    def differences(self, num_seeds: int, num_baseline_seeds: int, num_draws: int) -> np.ndarray:
        """Draws of what two means differ by because runs of one recipe do: N(0, tau^2 (1 / m + 1 / n))."""
        return math.sqrt(1 / num_seeds + 1 / num_baseline_seeds) * self.offsets(num_draws, 0)

    def offsets(self, num_draws: int, seed: int) -> np.ndarray:
        """Draws of how far one run lies off its recipe, N(0, tau^2), shuffled by `seed`."""
        quantiles = (np.arange(num_draws) + 0.5) / num_draws
        return self.draws(num_draws) * np.random.default_rng([2, seed]).permutation(ndtri(quantiles))

    def __str__(self) -> str:
        if not self.freedom:
            return f"{PRIOR_SD}, assumed"
        return f"{self.sd:.4f} from {self.freedom} degrees of freedom and a prior of {PRIOR_SD}"

    def to_json(self) -> dict[str, float | int]:
        """Plain data for JSON."""
        return {"sd": self.sd, "degrees_of_freedom": self.freedom}


def run_to_run(repeats: Sequence[Repeats]) -> RunToRun:
    """The posterior of tau given the seeds of every variant."""
    freedom = sum(variant.freedom for variant in repeats)
    if not freedom:
        return RunToRun(values=np.array([PRIOR_SD]), weights=np.ones(1), freedom=0)
    log_density = -PRIOR_FREEDOM * (np.log(GRID) + PRIOR_SD**2 / (2 * GRID**2))
    for variant in repeats:
        variance = GRID**2 + variant.own_variance
        log_density -= 0.5 * (variant.freedom * np.log(variance) + variant.squares / variance)
    weights = np.exp(log_density - log_density.max())
    return RunToRun(values=GRID, weights=weights / weights.sum(), freedom=freedom)
