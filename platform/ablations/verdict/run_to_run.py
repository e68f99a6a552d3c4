"""How much two runs of one recipe differ: one standard deviation for all variants of a sweep, in pass rate.

The seeds of one variant say little of it, those of nine say enough. So all of them count, with a prior, and where they
are few the repeated runs of other sweeps of the scale too. Where no recipe has a second seed, tau is assumed to be
PRIOR_SD:

    y_vi = mu_v + e_vi,  e_vi ~ N(0, tau^2 + s_vi^2)      seed i of variant v; s_vi is the error of its own readings
    tau ~ half-Cauchy(PRIOR_SCALE)

The half-Cauchy is flat up to its scale and has a long tail, so that it holds back neither a small tau nor a large one
that the seeds show (Gelman 2006, Prior distributions for variance parameters in hierarchical models; its scale is best
taken somewhat above what is expected). An inverse chi-squared prior of tau^2 about .0075^2 counts as two seeds more
that lie .0075 apart, whatever the others say: with nine degrees of freedom and a tau of .03 intervals left out 7.5 %
instead of 5, with five 9.5 %. What each costs and gives: benchmarks/spread_prior.py.
The posterior is a sum over a grid of ln tau.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

PRIOR_SD = 0.0075
"""Half the +-0.015 within which three ScaleRL runs lay (ScaleRL §4)."""
PRIOR_SCALE = 0.015
"""The +-0.015 itself: the prior's median, twice what is assumed."""
ENOUGH_FREEDOM = 18
"""Degrees of freedom beyond which other sweeps say no more: three seeds of nine variants; tau is known to 17 %."""
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
    num_here: int = 0
    """Of a recipe of other sweeps: its seeds in the sweep that is compared, where they are not repeated."""

    @property
    def num_runs(self) -> int:
        """Seeds that say something; 0 where there is one alone."""
        return self.freedom + 1 if self.freedom else 0

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray, own_variances: Sequence[float]) -> "Repeats":
        """The seeds of a variant, a number and its variance each."""
        y = np.asarray(values, dtype=float)
        return cls(
            squares=float(np.sum((y - y.mean()) ** 2)),
            freedom=y.size - 1,
            own_variance=float(np.mean(own_variances)),
        )


@dataclass(frozen=True, kw_only=True)
class OtherSweeps:
    """What repeated runs of other sweeps of the scale say of tau, an entry per recipe; empty where there are none.

    OtherSweeps(level=(Repeats(...),), ceiling=(), target=(Repeats(...),), sweeps=("pilot",))
    """

    level: tuple[Repeats, ...] = ()
    ceiling: tuple[Repeats, ...] = ()
    target: tuple[Repeats, ...] = ()
    sweeps: tuple[str, ...] = ()
    """Whose runs they are."""
    left_out: tuple[str, ...] = ()
    """Runs that could not be read, and why."""
    unkept: str = ""
    """Why this could not be kept; empty where it was."""


NO_OTHERS = OtherSweeps()
"""A sweep that stands alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunToRun:
    """The posterior of tau: RunToRun(values=GRID, weights=array([...]), freedom=18), in ascending values."""

    values: np.ndarray
    weights: np.ndarray
    freedom: int
    """Degrees of freedom that the seeds have given it; with none it is assumed."""
    num_runs: int = 0
    """Repeated runs that have given them."""
    num_other_runs: int = 0
    """How many of these are of other sweeps."""

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
        """Draws of how far one run lies off its recipe, N(0, tau^2), shuffled by `seed`; not to be written to."""
        return _offsets(self, num_draws, seed)

    def __str__(self) -> str:
        if not self.freedom:
            return f"{PRIOR_SD}, assumed"
        others = f", {self.num_other_runs} of them of other sweeps" if self.num_other_runs else ""
        return f"{self.sd:.4f} from {self.num_runs} repeated runs{others}"

    def to_json(self) -> dict[str, float | int]:
        """Plain data for JSON."""
        return {
            "sd": self.sd,
            "degrees_of_freedom": self.freedom,
            "runs": self.num_runs,
            "runs_of_other_sweeps": self.num_other_runs,
        }


@lru_cache(maxsize=64)  # every variant of a comparison asks for the same
def _offsets(spread: RunToRun, num_draws: int, seed: int) -> np.ndarray:
    quantiles = (np.arange(num_draws) + 0.5) / num_draws
    offsets = spread.draws(num_draws) * np.random.default_rng([2, seed]).permutation(ndtri(quantiles))
    offsets.flags.writeable = False
    return offsets


def run_to_run(repeats: Sequence[Repeats], others: Sequence[Repeats] = ()) -> RunToRun:
    """The posterior of tau given the seeds of every variant, and of as many recipes of `others` as are wanted."""
    own = sum(variant.freedom for variant in repeats)
    added = _wanted(others, own)
    freedom = own + sum(recipe.freedom for recipe in added)
    if not freedom:
        return RunToRun(values=np.array([PRIOR_SD]), weights=np.ones(1), freedom=0)
    log_density = np.log(GRID) - np.log1p((GRID / PRIOR_SCALE) ** 2)  # of ln tau
    for recipe in (*repeats, *added):
        variance = GRID**2 + recipe.own_variance
        log_density -= 0.5 * (recipe.freedom * np.log(variance) + recipe.squares / variance)
    weights = np.exp(log_density - log_density.max())
    num_added = sum(recipe.num_runs for recipe in added)
    return RunToRun(
        values=GRID,
        weights=weights / weights.sum(),
        freedom=freedom,
        num_runs=num_added + sum(variant.num_runs for variant in repeats),
        num_other_runs=num_added - sum(recipe.num_here for recipe in added),
    )


def _wanted(others: Sequence[Repeats], freedom: int) -> list[Repeats]:
    """The first of them, until there are ENOUGH_FREEDOM degrees of freedom in all."""
    wanted: list[Repeats] = []
    for recipe in others:
        if freedom >= ENOUGH_FREEDOM:
            break
        wanted.append(recipe)
        freedom += recipe.freedom
    return wanted
