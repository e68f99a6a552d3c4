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
from functools import cached_property, lru_cache

import numpy as np

PRIOR_RUNS, VARIANT_SHARE = 4.0, 0.4
"""Runs for which the model's own spread counts; share of a variant in the variance of errors."""
KERNEL_SD = 0.25
"""Standard deviation of the kernel, in ln L."""
FEWEST_TO_CHOOSE = 4
"""Smallest number of finished runs that can prefer another forecast."""
INTERPOLATED_FROM = 32
"""Number of distances from which shifts are interpolated."""
LEAST_DISTANCE, MOST_DISTANCE, NUM_KNOWN = 1e-3, 10.0, 512
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

    @property
    def num_runs(self) -> int:
        """Number n of finished runs."""
        return len(self._runs)

    @property
    def weight(self) -> float:
        """w; 0 unless two runs have finished."""
        return self.num_runs / (self.num_runs + PRIOR_RUNS) if self.num_runs > 1 else 0.0

    def shifts(self, variant: str, distance: np.ndarray, *, without: str | None = None) -> np.ndarray:
        """What is added to the centre of a run of this variant at each distance, in units of sqrt(L)."""
        if distance.size > INTERPOLATED_FROM:
            at, known = self._known_shifts(variant)
            return np.interp(np.log(np.maximum(distance, LEAST_DISTANCE)), at, known)
        names = np.array([run != without for run in self._runs], dtype=bool)
        if not names.any():
            return np.zeros(distance.size)
        means = self._mean_errors(np.log(np.maximum(distance, LEAST_DISTANCE)))[:, names]
        of_all = means.sum(axis=1) / (names.sum() + PRIOR_RUNS)
        own = means[:, [of == variant for of, is_kept in zip(self._runs.values(), names, strict=True) if is_kept]]
        num_own = own.shape[1]
        share = num_own * VARIANT_SHARE / (1 - VARIANT_SHARE + num_own * VARIANT_SHARE)
        return of_all + share * (own.mean(axis=1) - of_all) if num_own else of_all

    @lru_cache(maxsize=512)  # noqa: B019 - one entry a variant, and calibrations are few
    def _known_shifts(self, variant: str) -> tuple[np.ndarray, np.ndarray]:
        """ln L and the shifts there, for interpolation: a curve asks for hundreds of computes."""
        at = np.linspace(np.log(LEAST_DISTANCE), np.log(MOST_DISTANCE), NUM_KNOWN)
        parts = [self.shifts(variant, np.exp(some)) for some in np.split(at, NUM_KNOWN // INTERPOLATED_FROM)]
        return at, np.concatenate(parts)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Quantiles of what the shifts leave, in units of sqrt(L)."""
        return np.quantile(self._left, shares, method="weibull")

    @property
    def mean_error(self) -> float:
        """Mean absolute error of forecasts of finished runs that the others have calibrated, in pass rate."""
        return float(np.mean(np.abs(self._left) * np.sqrt([one.distance for one in self._by_run])))

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
    def _runs(self) -> dict[str, str]:
        """The variant of each run."""
        return {one.run: one.variant for one in self._by_run}

    @cached_property
    def _starts(self) -> np.ndarray:
        """Place of each run's first error."""
        names = [one.run for one in self._by_run]
        return np.array([names.index(run) for run in self._runs])

    def _mean_errors(self, at: np.ndarray) -> np.ndarray:
        """The mean error of each run about each ln L, shape (num_distances, num_runs)."""
        off = (at[:, None] - np.log([one.distance for one in self._by_run])) ** 2 / (2 * KERNEL_SD**2)
        sizes = np.diff(self._starts, append=len(self._by_run))
        weights = np.exp(np.repeat(np.minimum.reduceat(off, self._starts, axis=1), sizes, axis=1) - off)
        weighed = np.add.reduceat(weights * self._values, self._starts, axis=1)
        return weighed / np.add.reduceat(weights, self._starts, axis=1)

    @cached_property
    def _left(self) -> np.ndarray:
        """What the shifts that the other runs give leave of each error."""
        shifts = [self.shifts(one.variant, np.array([one.distance]), without=one.run)[0] for one in self._by_run]
        return self._values - shifts


UNCALIBRATED = Calibration()
