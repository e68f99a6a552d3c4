"""What finished runs teach a forecast: how far such forecasts lay off, and how widely.

A finished run is forecast from parts of itself. Its errors, measured minus foretold, grow like sqrt(L) with the
distance L = ln(C / C_n), so they are counted in units of sqrt(L). At a distance L, e_r is the mean error of run r, its
errors weighted by a normal kernel in ln L. With n runs, m of them of the variant:

    shift     = all + s (own - all)      all = sum e_r / (n + 4), own = mean e_r of the variant, s = .4 m / (.6 + .4 m)
    quantiles   of each error minus the shift that the other runs give, at the places i / (N + 1) of N errors
    w         = n / (n + 4)              the weight of what finished runs say, beside the model's own spread

That is split conformal prediction (arXiv 2107.07511) with sqrt(L) as the scale, beside a prior of four runs.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

PRIOR_RUNS, VARIANT_SHARE = 4.0, 0.4
"""Runs for which the model's own spread counts; share of a variant in the variance of errors."""
KERNEL_SD = 0.25
"""Standard deviation of the kernel, in ln L."""
FEWEST_TO_CHOOSE = 4
"""Smallest number of finished runs that can prefer another forecast."""
LEAST_DISTANCE = 1e-3
FURTHEST = 1.25
"""Greatest L up to which a shift grows: finished runs are cut at .3 at the earliest, and say nothing beyond."""


@dataclass(frozen=True, kw_only=True)
class PastError:
    """The error of one forecast of a finished run.

    PastError(variant="scalerl", run="scalerl-s0", error=-0.02, carried=-0.03, distance=0.69)
    """

    variant: str
    run: str
    error: float
    """Measured minus foretold, in units of sqrt(L)."""
    carried: float
    """Measured minus the last readings carried on, in units of sqrt(L)."""
    distance: float
    """L, from the last reading used to the mean of the computes foretold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """The errors of all forecasts of finished runs; none by default."""

    errors: tuple[PastError, ...] = ()
    is_carried: bool = False
    """True if the forecast is the last readings carried on, because that foretold the finished runs better."""

    def without(self, run: str) -> "Calibration":
        """What the other runs teach."""
        return replace(self, errors=tuple(one for one in self.errors if one.run != run))

    @cached_property
    def num_runs(self) -> int:
        """Number n of finished runs."""
        return len({one.run for one in self.errors})

    @property
    def weight(self) -> float:
        """w; 0 unless two runs have finished."""
        return self.num_runs / (self.num_runs + PRIOR_RUNS) if self.num_runs > 1 else 0.0

    def shifts(self, variant: str, distance: np.ndarray) -> np.ndarray:
        """What is added to the centre of a run of this variant at each distance, in units of sqrt(L)."""
        if not self.errors:
            return np.zeros(distance.size)
        at = np.log(np.maximum(distance, LEAST_DISTANCE))
        return _shifts(self._mean_errors(at), np.ones(self.num_runs, dtype=bool), self._variants == variant)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Quantiles of what the shifts leave, in units of sqrt(L)."""
        return np.quantile(self._left, shares, method="weibull")

    @property
    def mean_error(self) -> float:
        """Mean absolute error of forecasts of finished runs that the others have calibrated, in pass rate."""
        return float(np.mean(np.abs(self._left) * np.sqrt(self._distances)))

    @property
    def prefers_carried(self) -> bool:
        """True if carrying the last readings on has foretold the finished runs better; False for fewer than four."""
        if self.num_runs < FEWEST_TO_CHOOSE:
            return False
        ours, carried = (replace(self, is_carried=is_carried).mean_error for is_carried in (False, True))
        return carried < ours

    @cached_property
    def _by_run(self) -> list[PastError]:
        return sorted(self.errors, key=lambda one: one.run)

    @cached_property
    def _values(self) -> np.ndarray:
        return np.array([one.carried if self.is_carried else one.error for one in self._by_run])

    @cached_property
    def _distances(self) -> np.ndarray:
        return np.array([one.distance for one in self._by_run])

    @cached_property
    def _starts(self) -> np.ndarray:
        """Place of each run's first error."""
        names = np.array([one.run for one in self._by_run])
        return np.flatnonzero(np.append(True, names[1:] != names[:-1]))

    @cached_property
    def _variants(self) -> np.ndarray:
        """The variant of each run."""
        return np.array([self._by_run[place].variant for place in self._starts])

    def _mean_errors(self, at: np.ndarray) -> np.ndarray:
        """The mean error of each run about each ln L, shape (num_distances, num_runs)."""
        off = (at[:, None] - np.log(self._distances)) ** 2 / (2 * KERNEL_SD**2)
        sizes = np.diff(self._starts, append=len(self._by_run))
        weights = np.exp(np.repeat(np.minimum.reduceat(off, self._starts, axis=1), sizes, axis=1) - off)
        weighed = np.add.reduceat(weights * self._values, self._starts, axis=1)
        return weighed / np.add.reduceat(weights, self._starts, axis=1)

    @cached_property
    def _left(self) -> np.ndarray:
        """What the shifts that the other runs give leave of each error."""
        sizes = np.diff(self._starts, append=len(self._by_run))
        others = np.repeat(~np.eye(self.num_runs, dtype=bool), sizes, axis=0)
        own = np.repeat(self._variants[:, None] == self._variants, sizes, axis=0)
        return self._values - _shifts(self._mean_errors(np.log(self._distances)), others, own)


def _shifts(means: np.ndarray, is_kept: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    """The shift at each distance from the mean errors of the runs that are kept, and of those of the variant.

    `means` has shape (num_distances, num_runs), the others that or (num_runs,).
    """
    is_own = is_own & is_kept
    of_all = np.where(is_kept, means, 0.0).sum(axis=1) / (is_kept.sum(axis=-1) + PRIOR_RUNS)
    num_own = is_own.sum(axis=-1)
    own = np.where(is_own, means, 0.0).sum(axis=1) / np.maximum(num_own, 1)
    return of_all + num_own * VARIANT_SHARE / (1 - VARIANT_SHARE + num_own * VARIANT_SHARE) * (own - of_all)


UNCALIBRATED = Calibration()
