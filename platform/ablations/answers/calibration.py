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
        names = [run for run in self._runs if run != without]
        if not names:
            return np.zeros(distance.size)
        rows = [self._runs[run] for run in names]
        means = np.stack([self._mean_error(places, distance) for _, places in rows])
        of_all = means.sum(axis=0) / (len(names) + PRIOR_RUNS)
        own = means[[of_variant == variant for of_variant, _ in rows]]
        if not len(own):
            return of_all
        share = len(own) * VARIANT_SHARE / (1 - VARIANT_SHARE + len(own) * VARIANT_SHARE)
        return of_all + share * (own.mean(axis=0) - of_all)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Quantiles of what the shifts leave, in units of sqrt(L)."""
        return np.quantile(self._left, shares, method="weibull")

    @property
    def mean_error(self) -> float:
        """Mean absolute error of forecasts of finished runs that the others have calibrated, in pass rate."""
        return float(np.mean(np.abs(self._left) * np.sqrt([one.distance for one in self.errors])))

    @property
    def prefers_carried(self) -> bool:
        """True if carrying the last readings on has foretold the finished runs better; False for fewer than four."""
        if self.num_runs < FEWEST_TO_CHOOSE:
            return False
        ours, carried = (replace(self, is_carried=is_carried).mean_error for is_carried in (False, True))
        return carried < ours

    @cached_property
    def _values(self) -> np.ndarray:
        return np.array([one.carried if self.is_carried else one.error for one in self.errors])

    @cached_property
    def _runs(self) -> dict[str, tuple[str, list[int]]]:
        """The variant of each run, and the places of its errors."""
        found: dict[str, tuple[str, list[int]]] = {}
        for place, one in enumerate(self.errors):
            found.setdefault(one.run, (one.variant, []))[1].append(place)
        return found

    def _mean_error(self, places: list[int], distance: np.ndarray) -> np.ndarray:
        at = np.log([self.errors[place].distance for place in places])
        off = (np.log(np.maximum(distance, 1e-6))[:, None] - at) ** 2 / (2 * KERNEL_SD**2)
        weights = np.exp(off.min(axis=1, keepdims=True) - off)
        return weights @ self._values[places] / weights.sum(axis=1)

    @cached_property
    def _left(self) -> np.ndarray:
        left = np.empty(len(self.errors))
        for run, (variant, places) in self._runs.items():
            distance = np.array([self.errors[place].distance for place in places])
            left[places] = self._values[places] - self.shifts(variant, distance, without=run)
        return left


UNCALIBRATED = Calibration()
