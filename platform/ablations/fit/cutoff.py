"""The early cut-off: the compute from which a curve follows eq. 1, and A for other choices of it.

The early regime of RL is almost linear and noisy, so the paper fits nothing below 1.5k GPU-hours, about one epoch
(ScaleRL §2.1, A.7, arXiv 2510.13786). Without such a number the readings decide: fit the last 60 % and go back block by
block while the fit predicts the previous block. This finds a step of 0.05 at the end of the early regime, and one of
0.03 in about half of the runs. A straight line that joins the law, never more than 0.016 off, goes undetected
(`benchmarks/cutoff.py`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtri

from ablations.errors import AblationsError
from ablations.fit.asymptote import WITHOUT_RISE, AsymptoteEstimate, Verdict
from ablations.fit.curve import Curve
from ablations.fit.result import Fit

LATE_SHARE = 0.6
"""Fraction of the readings, the last ones, that is assumed to follow the law."""
BLOCK_READINGS = 4
LARGEST_MISS = 3.0
"""Largest miss, in standard errors, of a block that still follows the law."""
LEAST_TAIL = 1e-300
LEAST_FOR_CUTOFF = 10
"""Smallest number of readings whose last 60 % are the six that a fit needs."""


@dataclass(frozen=True, kw_only=True)
class CutoffRow:
    """A under a fit that starts at one cut-off.

    CutoffRow(fit_from=1491.0, points=30, A=0.612, A_lo=0.590, A_hi=0.633, verdict="weak")
    """

    fit_from: float
    points: int
    A: float | None
    """None without an upper end, like A_hi."""
    A_lo: float
    A_hi: float | None
    verdict: Verdict

    @property
    def asymptote(self) -> AsymptoteEstimate:
        """A with its interval, for display."""
        return AsymptoteEstimate(A=self.A, lo=self.A_lo, hi=self.A_hi, rises=self.verdict not in WITHOUT_RISE)


@dataclass(frozen=True, kw_only=True)
class BlockCheck:
    """A block of readings compared with the prediction of a fit of the later ones.

    BlockCheck(compute=(639.0, 1278.0), score=0.387, predicted=0.341, standard_errors=6.1)
    """

    compute: tuple[float, float]
    """Compute of the first and of the last reading in the block."""
    score: float
    """Mean of the readings."""
    predicted: float
    """Mean of the predictions."""
    standard_errors: float
    """Distance of the readings from the prediction, as the z-score of a normal variable with the same probability."""

    @property
    def follows(self) -> bool:
        return self.standard_errors <= LARGEST_MISS


@dataclass(frozen=True, kw_only=True, eq=False)
class Cutoff:
    """The cut-off that the readings support."""

    fit_from: float
    """Only readings with more compute than this are fitted."""
    fit: Fit
    off_the_law: BlockCheck | None
    """The first block, from the end, that does not follow the law; None if all readings do."""


def automatic_cutoff(curve: Curve, *, fit: Callable[[float], Fit]) -> Cutoff:
    """The smallest cut-off from which `curve` follows its law; `fit` fits the curve from a given cut-off.

        automatic_cutoff(curve, fit=lambda fit_from: fit_curve(curve, fit_from=fit_from))

    Costs one fit per block of four in the first 40 % of the readings. Raises AblationsError with the number of readings
    needed if there are too few.
    """
    fits: dict[float, Fit] = {}

    def fit_at(fit_from: float) -> Fit:
        if fit_from not in fits:
            fits[fit_from] = fit(fit_from)
        return fits[fit_from]

    _require_readings(curve, int(np.sum(curve.compute > 0)), "beyond step 0")
    end = fit_at(0.0).window[1]
    fitted = (curve.compute > 0) & (curve.compute <= end)
    compute, score = curve.compute[fitted], curve.score[fitted]
    if compute.size < LEAST_FOR_CUTOFF:  # too few left by a collapse
        return Cutoff(fit_from=0.0, fit=fit_at(0.0), off_the_law=None)
    first = num_early(compute.size)
    off_the_law = None
    while first > 0:
        block = slice(max(first - BLOCK_READINGS, 0), first)
        check = check_block(fit_at(compute[first - 1]), compute[block], score[block])
        if not check.follows:
            off_the_law = check
            break
        first = block.start
    fit_from = cutoff_before(compute, first)
    return Cutoff(
        fit_from=fit_from,
        fit=fit_at(fit_from),
        off_the_law=off_the_law,
    )


def sensitivity(cutoffs: Iterable[float], *, fit: Callable[[float], Fit]) -> tuple[CutoffRow, ...]:
    """A against the cut-off: one row per value in `cutoffs`, in ascending order."""
    fits = [(fit_from, fit(fit_from)) for fit_from in sorted(cutoffs)]
    return tuple(
        CutoffRow(
            fit_from=fit_from,
            points=f.points,
            A=f.A,
            A_lo=f.A_lo,
            A_hi=f.A_hi,
            verdict=f.verdict,
        )
        for fit_from, f in fits
    )


def check_block(fit: Fit, compute: np.ndarray, score: np.ndarray) -> BlockCheck:
    """Compare readings that `fit` has not seen with its posterior prediction.

    d^2 = e' (Cov + sd^2 R)^-1 e, e = readings - mean of the draws, Cov = covariance of the draws, R_ij = rho^|i - j|;
    chi-squared with one degree of freedom per reading. The mean error alone would be a weaker test: the height of the
    curve outside the window is poorly known, but that it has no step there is known well.
    """
    draws = fit.predict_draws(compute)
    error = score - draws.mean(axis=0)
    lags = np.abs(np.subtract.outer(np.arange(score.size), np.arange(score.size)))
    covariance = np.atleast_2d(np.cov(draws, rowvar=False)) + fit.noise_sd**2 * fit.autocorrelation**lags
    distance = float(error @ np.linalg.solve(covariance, error))
    return BlockCheck(
        compute=(float(compute[0]), float(compute[-1])),
        score=float(score.mean()),
        predicted=float(draws.mean()),
        standard_errors=normal_equivalent(distance, score.size),
    )


def normal_equivalent(chi_squared: float, degrees_of_freedom: int) -> float:
    """The z for which P(|normal| > z) is the probability of a larger chi-squared: 3 for 16.25 with 4 degrees."""
    tail = max(float(chdtrc(degrees_of_freedom, chi_squared)), LEAST_TAIL)
    return float(-ndtri(tail / 2))


def num_early(num_readings: int) -> int:
    """Number of readings before the last 60 %."""
    return num_readings - int(np.ceil(LATE_SHARE * num_readings))


def cutoff_before(compute: np.ndarray, index: int) -> float:
    """The cut-off that makes reading `index` the first one fitted."""
    return 0.0 if index == 0 else float(compute[index - 1])


def _require_readings(curve: Curve, num_readings: int, which: str) -> None:
    if num_readings < LEAST_FOR_CUTOFF:
        raise AblationsError(
            f"curve {curve.name!r}: {num_readings} evaluations {which}; an automatic cut-off needs at least "
            f"{LEAST_FOR_CUTOFF}, to fit the last 60 % of them"
        )
