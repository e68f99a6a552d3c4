"""The run-to-run difference: one standard deviation for all variants of a sweep, in pass rate.

Verdicts, forecasts and stop rules all get this spread here, and draw from it with the methods of `RunToRun`.

The seeds of one variant say little about the spread; those of nine say enough. So all seeds count, with a prior, and if
they are few, so do the repeated runs of other sweeps of the scale. If no recipe has a second seed, tau is assumed to be
PRIOR_SD. The model for seed i of variant v is

    y_vi = mu_v + u_b(v,i) + e_vi    u_b ~ N(0, omega^2), e_vi ~ N(0, tau^2 + s_vi^2)

with s_vi the error of its own readings. u_b is the effect of the start b that a run shares with runs of other variants:
the same model, warm start, tasks and seed. This effect cancels in a difference of variants with the same starts, which
is why variants should share seeds. If the starts are unknown, or no two variants share one, omega is 0 and tau holds
everything.

    tau ~ half-Cauchy(PRIOR_SCALE),  omega = 0 with a probability of NO_EFFECT, else ~ half-Cauchy(PRIOR_SCALE)

The half-Cauchy is flat up to its scale and has a long tail, so it suppresses neither a small tau nor a large one that
the seeds show (Gelman 2006, Prior distributions for variance parameters in hierarchical models; the scale is best taken
somewhat above the expected value). An inverse chi-squared prior of tau^2 about .0075^2 counts as two more seeds that
lie .0075 apart, whatever the others say: with nine degrees of freedom and a tau of .03, intervals missed the truth in
7.5 % of cases instead of 5 %, with five in 9.5 %. benchmarks/spread_prior.py shows the cost and gain of each prior.
Without its half at 0, omega would absorb chance differences of two variants' seeds, and tau would be too small:
benchmarks/seed_pairing.py.

The posterior is a sum over a grid of ln tau and ln omega, see `variance_components`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ndtri

from ablations.answers.variance_components import (
    log_half_cauchy,
    log_normal,
    log_spike_and_slab,
    restricted_log_likelihood,
)

PRIOR_SD = 0.0075
"""Half of the +-0.015 that spans three ScaleRL runs (ScaleRL §4)."""
PRIOR_SCALE = 0.015
"""The +-0.015 itself: the prior's median, twice the assumed sd."""
ENOUGH_FREEDOM = 18
"""Degrees of freedom beyond which other sweeps do not count: three seeds of nine variants, which give tau to 17 %."""
NO_EFFECT = 0.5
"""Prior probability that variants share no seed effect."""
GRID = np.geomspace(5e-4, 0.2, 241)
"""Grid of tau."""
SHARED_GRID = np.concatenate([[0.0], np.geomspace(5e-4, 0.2, 61)])
"""Grid of omega."""
UNKNOWN = ""
"""An unknown start, which no other run shares."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Evidence on tau from the seeds of one variant: Repeats(squares=0.00031, freedom=2, own_variance=0.00004)."""

    squares: float
    """Sum of squared differences from the mean of the seeds."""
    freedom: int
    """Number of seeds minus one."""
    own_variance: float
    """Mean variance of one seed's number given its readings, s^2."""
    num_here: int = 0
    """For a recipe of other sweeps: its number of seeds in the compared sweep, if it is not repeated there."""
    runs: tuple[tuple[str, float], ...] = ()
    """Start and number of each seed; empty if the start of any is unknown."""

    @property
    def num_runs(self) -> int:
        """Number of seeds that give evidence; 0 if there is only one."""
        return self.freedom + 1 if self.freedom else 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Repeats":
        """The inverse of `asdict` by way of JSON."""
        return cls(**{**content, "runs": tuple((start, value) for start, value in content["runs"])})

    @classmethod
    def of(
        cls, values: Sequence[float] | np.ndarray, own_variances: Sequence[float], starts: Sequence[str] = ()
    ) -> "Repeats":
        """Build the evidence from the number, its variance and the start of each seed."""
        y = np.asarray(values, dtype=float)
        is_known = len(starts) == y.size and all(starts)
        return cls(
            squares=float(np.sum((y - y.mean()) ** 2)),
            freedom=y.size - 1,
            own_variance=float(np.mean(own_variances)),
            runs=tuple(zip(starts, y.tolist(), strict=True)) if is_known else (),
        )


@dataclass(frozen=True, kw_only=True)
class OtherSweeps:
    """Evidence on tau from repeated runs of other sweeps of the scale, one entry per recipe; empty if there are none.

    OtherSweeps(says={"level": (Repeats(...),), "target": (Repeats(...),)}, sweeps=("pilot",))
    """

    says: Mapping[str, tuple[Repeats, ...]] = field(default_factory=dict)
    """Evidence by the name of the spread."""
    sweeps: tuple[str, ...] = ()
    """Names of the sweeps."""
    left_out: tuple[str, ...] = ()
    """Runs that could not be read, with the reason."""
    unkept: str = ""
    """The reason why the evidence could not be kept; empty if it was."""

    def of(self, spread: str) -> tuple[Repeats, ...]:
        """The evidence on one spread."""
        return self.says.get(spread, ())


NO_OTHERS = OtherSweeps()
"""No evidence from other sweeps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunToRun:
    """The posterior of tau and omega: RunToRun(values=GRID, shared=zeros, weights=array([...]), freedom=18)."""

    values: np.ndarray
    """Values of tau, shape (num_points,), ascending if every omega is 0."""
    shared: np.ndarray
    """Values of omega at the same points."""
    weights: np.ndarray
    freedom: int
    """Degrees of freedom from the seeds; tau is assumed if 0."""
    num_runs: int = 0
    """Number of repeated runs behind the posterior."""
    num_other_runs: int = 0
    """Number of these from other sweeps."""

    @property
    def sd(self) -> float:
        """Posterior median of the run-to-run sd, sqrt(tau^2 + omega^2)."""
        return float(self._quantiles(np.hypot(self.values, self.shared), np.array([0.5]))[0])

    @property
    def paired_sd(self) -> float:
        """Posterior median of tau, the run-to-run sd left once shared seed effects cancel."""
        return float(self._quantiles(self.values, np.array([0.5]))[0])

    @property
    def has_shared(self) -> bool:
        """True if starts have an effect."""
        return float(self.weights[self.shared > 0].sum()) > 0.5

    def differences(self, starts: Sequence[str], baseline: Sequence[str], num_draws: int) -> np.ndarray:
        """Draws of the difference between the means of two variants due to run-to-run differences, given the starts of
        each.

        N(0, tau^2 (1 / m + 1 / n) + omega^2 sum_b (m_b / m - n_b / n)^2), with m_b of the m runs having start b.
        """
        return _mean_offsets(self, 1 / len(starts) + 1 / len(baseline), _unshared(starts, baseline), num_draws)

    def mean_offsets(self, starts: Sequence[str], num_draws: int) -> np.ndarray:
        """Draws of the deviation from the recipe of the mean of runs with these starts."""
        return _mean_offsets(self, 1 / len(starts), _unshared(starts, ()), num_draws)

    def offsets(self, num_draws: int, seed: int, start: int | None = None) -> np.ndarray:
        """Draws of the deviation of one run from its recipe, shuffled by `seed`; the array must not be written to.

        Runs with the same `start` number share the draws of its effect; None is a start that no other run has.
        """
        return _run_offsets(self, num_draws, seed, start)

    def run_offsets(self, sides: Sequence[Sequence[str]], num_draws: int) -> list[list[np.ndarray]]:
        """Draws of the deviation of every run of every side from its recipe, given the start of each.

        All draws are joint: runs with the same start share its effect, on either side.
        """
        numbers = {start: number for number, start in enumerate(dict.fromkeys(chain.from_iterable(sides)))}
        return [
            [
                self.offsets(num_draws, len(sides) * seed + side, None if start == UNKNOWN else numbers[start])
                for seed, start in enumerate(starts)
            ]
            for side, starts in enumerate(sides)
        ]

    def _quantiles(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Weighted quantiles of a function of the grid points."""
        order = np.argsort(values, kind="stable")
        return np.interp(shares, np.cumsum(self.weights[order]), values[order])

    def __str__(self) -> str:
        if not self.freedom:
            return f"{PRIOR_SD}, assumed"
        others = f", {self.num_other_runs} of them of other sweeps" if self.num_other_runs else ""
        paired = f" ({self.paired_sd:.4f} where they begin alike)" if self.has_shared else ""
        return f"{self.sd:.4f}{paired} from {self.num_runs} repeated runs{others}"

    def to_json(self) -> dict[str, float | int]:
        """Plain data for JSON."""
        return {
            "sd": self.sd,
            "paired_sd": self.paired_sd,
            "degrees_of_freedom": self.freedom,
            "runs": self.num_runs,
            "runs_of_other_sweeps": self.num_other_runs,
        }


def _midpoints(number: int) -> np.ndarray:
    return (np.arange(number) + 0.5) / number


def _unshared(starts: Sequence[str], baseline: Sequence[str]) -> float:
    """sum_b (m_b / m - n_b / n)^2; no other run has an unknown start."""
    sides = Counter(starts), Counter(baseline)
    alone = sum(side[UNKNOWN] / side.total() ** 2 for side in sides if side)
    named = [start for start in dict.fromkeys([*starts, *baseline]) if start != UNKNOWN]
    shares = ([side[start] / max(side.total(), 1) for side in sides] for start in named)
    return alone + sum((of_one - of_other) ** 2 for of_one, of_other in shares)


@lru_cache(maxsize=64)  # every variant of a comparison asks for the same draws
def _mean_offsets(spread: RunToRun, of_run: float, of_start: float, num_draws: int) -> np.ndarray:
    """Draws of N(0, of_run tau^2 + of_start omega^2), shuffled."""
    sds = np.sqrt(of_run * spread.values**2 + of_start * spread.shared**2)
    drawn = np.random.default_rng(1).permutation(spread._quantiles(sds, _midpoints(num_draws)))
    offsets = drawn * np.random.default_rng([2, 0]).permutation(ndtri(_midpoints(num_draws)))
    offsets.flags.writeable = False
    return offsets


@lru_cache(maxsize=64)
def _run_offsets(spread: RunToRun, num_draws: int, seed: int, start: int | None) -> np.ndarray:
    normal = ndtri(_midpoints(num_draws))
    of_run = np.random.default_rng([2, seed]).permutation(normal)
    if not spread.shared.any():
        drawn = np.random.default_rng(1).permutation(spread._quantiles(spread.values, _midpoints(num_draws)))
        offsets = drawn * of_run
    else:
        points = np.searchsorted(np.cumsum(spread.weights), _midpoints(num_draws)).clip(max=spread.weights.size - 1)
        points = np.random.default_rng(1).permutation(points)
        shuffled_by = [3, seed] if start is None else [4, start]
        of_start = np.random.default_rng(shuffled_by).permutation(normal)
        offsets = spread.values[points] * of_run + spread.shared[points] * of_start
    offsets.flags.writeable = False
    return offsets


def run_to_run(repeats: Sequence[Repeats], others: Sequence[Repeats] = ()) -> RunToRun:
    """The posterior of tau and omega given the seeds of every variant and as many recipes of `others` as needed."""
    own = sum(variant.freedom for variant in repeats)
    added = _wanted(others, own)
    freedom = own + sum(recipe.freedom for recipe in added)
    if not freedom:
        return RunToRun(values=np.array([PRIOR_SD]), shared=np.zeros(1), weights=np.ones(1), freedom=0)
    every = [recipe for recipe in (*repeats, *added) if recipe.freedom]
    begun = _that_share_starts(every)
    tau, omega = GRID[:, None], SHARED_GRID[None] if begun else np.zeros((1, 1))
    log_density = log_half_cauchy(tau, PRIOR_SCALE)  # density in ln tau and ln omega
    if begun:
        own_variance = float(np.average([one.own_variance for one in begun], weights=[one.freedom for one in begun]))
        log_density = log_density + log_spike_and_slab(omega, PRIOR_SCALE, NO_EFFECT)
        log_density = log_density + restricted_log_likelihood([one.runs for one in begun], tau, omega, own_variance)
    for recipe in every:
        if not (begun and recipe.runs):
            log_density = log_density + log_normal(tau**2 + recipe.own_variance, recipe.freedom, recipe.squares)
    weights = np.exp(log_density - log_density.max()).ravel()
    values, shared = (np.broadcast_to(axis, log_density.shape).ravel() for axis in (tau, omega))
    num_added = sum(recipe.num_runs for recipe in added)
    return RunToRun(
        values=values,
        shared=shared,
        weights=weights / weights.sum(),
        freedom=freedom,
        num_runs=num_added + sum(variant.num_runs for variant in repeats),
        num_other_runs=num_added - sum(recipe.num_here for recipe in added),
    )


def _that_share_starts(every: Sequence[Repeats]) -> list[Repeats]:
    """The recipes whose starts are known, if runs of two recipes share any start; else none.

    Recipes with bit-identical numbers count as one: their difference in settings has never taken effect, and they say
    nothing about tau.
    """
    distinct = list({recipe.runs: recipe for recipe in every if recipe.runs}.values())
    counts = Counter(start for recipe in distinct for start in {start for start, _ in recipe.runs})
    return distinct if any(count > 1 for count in counts.values()) else []


def _wanted(others: Sequence[Repeats], freedom: int) -> list[Repeats]:
    """The first entries of `others`, until there are ENOUGH_FREEDOM degrees of freedom in all."""
    wanted: list[Repeats] = []
    for recipe in others:
        if freedom >= ENOUGH_FREEDOM:
            break
        wanted.append(recipe)
        freedom += recipe.freedom
    return wanted
