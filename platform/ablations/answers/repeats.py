"""The numbers of seeds, each with its error, and their common spread.

    y_vi = mu_v + e_vi      e_vi ~ N(0, tau^2 + s_vi^2)

Each seed of a variant weighs 1 / (tau^2 + s_vi^2). tau^2 is the value at which the weighted squares of all variants
equal their expectation (Paule and Mandel 1982); if even tau = 0 explains more than the seeds show, a scale below 1 is
found (Hartung and Knapp 2001).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from ablations.answers.student import LEAST_VARIANCE

UNKNOWN = ""
"""A start that is unknown, so that no other run is taken to share it."""
LEAST_SCALE = 0.25
"""Lower limit for the scatter of seeds, as a multiple of their reading errors, which are known to a factor of two."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """One number for each of a variant's seeds.

    Repeats(values=(0.591, 0.603), starts=("a", "b"), own_variances=(4e-5, 4e-5))
    """

    values: tuple[float, ...]
    starts: tuple[str, ...]
    own_variances: tuple[float, ...]
    """Variance of each number given its readings, s^2."""
    num_here: int = 0
    """For a recipe from other sweeps: its number of seeds in the compared sweep, if it is not repeated there."""

    @property
    def freedom(self) -> int:
        """Number of seeds minus one."""
        return max(len(self.values) - 1, 0)

    @classmethod
    def of(cls, values: Sequence[float], own_variances: Sequence[float], starts: Sequence[str] = ()) -> "Repeats":
        """Build the record from the number, its variance and the start of each seed; starts may be unknown."""
        known = tuple(starts) if len(starts) == len(values) else (UNKNOWN,) * len(values)
        return cls(values=tuple(map(float, values)), starts=known, own_variances=tuple(map(float, own_variances)))

    def weighed(self, tau: float) -> "Weighed":
        """The mean of the seeds, each weighted by 1 / (tau^2 + s_i^2)."""
        y, variances = np.array(self.values), tau**2 + np.array(self.own_variances)
        weights = 1 / np.maximum(variances, LEAST_VARIANCE)
        mean = float(weights @ y / weights.sum())
        return Weighed(mean=mean, chi_squared=float(weights @ (y - mean) ** 2), variance=float(y.size / weights.sum()))


class Weighed(NamedTuple):
    """The seeds of a variant, weighted by their errors."""

    mean: float
    chi_squared: float
    """sum_i (y_i - mean)^2 / (tau^2 + s_i^2), with an expectation of the number of seeds minus one."""
    variance: float
    """Harmonic mean of tau^2 + s_i^2: the variance of the mean times the number of seeds."""


@dataclass(frozen=True, kw_only=True)
class OtherSweeps:
    """Repeated runs of other sweeps of the scale, one entry per recipe; empty if there are none.

    OtherSweeps(says={"level": (Repeats(...),), "compute": (Repeats(...),)}, sweeps=("pilot",))
    """

    says: Mapping[str, tuple[Repeats, ...]] = field(default_factory=dict)
    """Evidence by the name of the spread."""
    sweeps: tuple[str, ...] = ()
    """Names of the sweeps."""
    left_out: tuple[str, ...] = ()
    """Runs that could not be read, with the reason."""
    unkept: str = ""
    """The reason why the evidence could not be saved; empty if it was."""

    def of(self, spread: str) -> tuple[Repeats, ...]:
        """The evidence on one spread."""
        return self.says.get(spread, ())


NO_OTHERS = OtherSweeps()
"""No evidence from other sweeps."""


@dataclass(frozen=True, kw_only=True)
class CommonSpread:
    """A common variance of runs about their variant's mean, with or without the effect of their start.

    CommonSpread(tau=0.0098, scale=1.0, own_variance=0.00001, freedom=18)
    """

    tau: float = 0.0
    """Standard deviation between runs, without the errors of their readings."""
    scale: float = 1.0
    own_variance: float = 0.0
    """Mean s^2 of the runs behind the spread."""
    freedom: float = 0.0

    @property
    def sd(self) -> float:
        """Standard deviation of the numbers of runs, with the errors of their readings."""
        return math.sqrt(max(self.scale * (self.tau**2 + self.own_variance), LEAST_VARIANCE))

    @classmethod
    def of(cls, groups: Sequence[Repeats], *, freedom: float | None = None) -> "CommonSpread":
        """The tau at which the squares of all groups over tau^2 + s_i^2 equal their expectation; if tau is 0, a scale
        below 1.

        `freedom` is the expectation, by default the number of seeds minus the number of groups.
        """
        total = float(sum(one.freedom for one in groups)) if freedom is None else freedom
        if total <= 0:
            return cls()
        y, s = (np.concatenate([getattr(one, name) for one in groups]) for name in ("values", "own_variances"))
        group = np.repeat(np.arange(len(groups)), [len(one.values) for one in groups])

        def excess(tau: float) -> float:
            weights = 1 / np.maximum(tau**2 + s, LEAST_VARIANCE)
            means = np.bincount(group, weights * y) / np.bincount(group, weights)
            return float(weights @ (y - means[group]) ** 2) - total

        own = float(np.average([np.mean(one.own_variances) for one in groups], weights=[one.freedom for one in groups]))
        smallest = math.sqrt(LEAST_VARIANCE)
        if excess(smallest) <= 0:
            scale = (excess(smallest) + total) / total
            return cls(scale=max(scale, LEAST_SCALE), own_variance=own, freedom=total)
        highest = 1.0 + float(np.ptp(y)) * math.sqrt(y.size)
        tau = root_scalar(excess, bracket=(smallest, highest), method="brentq", xtol=1e-12).root
        return cls(tau=float(tau), own_variance=own, freedom=total)
