"""Finds a collapse: the score declines for good after some reading.

Two conditions must hold. The score has clearly fallen: the mean of the last three readings is below the highest mean of
three by more than three standard errors, after a rise of at least as much. And since that peak the score has stayed
below what eq. 1 forecasts, by a one-sided CUSUM (Page 1954, Biometrika 41) of the forecast errors,

    z_t = max(-4, (y_t - forecast_t) / sqrt(variance of a reading + variance of the forecast))
    S_t = max(0, S_(t-1) - z_t - k),    S = 0 at the peak,    alarm if S_t > h

with eq. 1 fitted to the readings up to t - 3. Since eq. 1 rises, reading t should also reach the curve at t - 3, which
is better known while a short curve still rises steeply: z_t is the smaller of the two.

A curve that merely rises more slowly than forecast fails the first condition; a single bad evaluation fails the second,
since an alarm takes three readings. `benchmarks/collapse_detection.py` measures false alarms and delays.
"""

from dataclasses import dataclass

import numpy as np

from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import LEAST_SD
from ablations.fit.engine.projection import Prior, Solution, solve

LAG = 3
"""Readings between the last one fitted and the forecast one, so that a decline does not bend its own forecast."""
CUSUM_SLACK = 1.0
"""The slack k: errors above this many standard deviations add up; those of a healthy curve seldom do."""
CUSUM_LIMIT = 8.0
"""The alarm level h."""
LARGEST_ERROR = 4.0
"""Maximum number of standard deviations that one reading counts for."""
SMOOTHED_READINGS = 3
LEAST_FALL = 3.0
"""Minimum fall, in standard errors of the difference between two means of three readings."""
NUM_PARAMETERS = 4
LEAST_FITTED = 6
"""Minimum number of fitted readings: two more than parameters, to estimate the noise."""
LARGEST_AUTOCORRELATION = 0.9
"""Upper limit of the autocorrelation: about 30 readings cannot distinguish longer-lasting noise from the curve."""

ASSUMED_AUTOCORRELATION = 0.5
"""Autocorrelation assumed if there are too few readings to measure it; residuals of published runs have 0.3 to 0.56."""
LEAST_MEASURED = 12
"""Minimum number of readings for measuring autocorrelation, because a fit absorbs most of it."""
LEAST_JUDGED = 8
"""Minimum number of readings; with fewer, not even the size of the noise is known."""


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """A decline, with indices into the readings that were examined.

    Collapse(index=41, alarm=46)
    """

    index: int
    """The last reading before the decline, at which the CUSUM was last 0."""
    alarm: int
    """The reading at which the CUSUM passed its limit."""


@dataclass(frozen=True, kw_only=True)
class ReadingNoise:
    """Variance of a reading and its lag-1 autocorrelation, treated as AR(1)."""

    variance: float
    autocorrelation: float = 0.0

    @property
    def long_run(self) -> float:
        """Variance of equally informative independent readings: variance (1 + rho) / (1 - rho)."""
        return self.variance * (1 + self.autocorrelation) / (1 - self.autocorrelation)

    @property
    def of_smoothed(self) -> float:
        """Variance of a mean of three: variance (3 + 4 rho + 2 rho^2) / 9."""
        return self.variance * (3 + 4 * self.autocorrelation + 2 * self.autocorrelation**2) / 9


def find_collapse(
    compute: np.ndarray, score: np.ndarray, *, start_score: float | None = None, sampling_variance: float = 0.0
) -> Collapse | None:
    """The collapse of a curve; None if the curve is healthy, has recovered, never rose or is too short to tell.

    `compute` ascends from above 0; `start_score` is the reading before RL; `sampling_variance` is the smallest variance
    that a reading can have. Costs at most one fit if the score has not fallen, else one per reading since the peak.
    """
    if score.size < LEAST_JUDGED:
        return None
    means = np.convolve(score, np.full(SMOOTHED_READINGS, 1 / SMOOTHED_READINGS), mode="valid")
    peak = int(np.argmax(means))
    start = float(means[: peak + 1].min())
    rise = means[peak] - (start if start_score is None else min(start, start_score))
    change = min(rise, means[peak] - means[-1])
    floor = max(sampling_variance, LEAST_SD**2)
    # The noise is at least the floor, which spares nearly every healthy curve its fits.
    if change <= least_fall(ReadingNoise(variance=floor)):
        return None
    x = np.log(compute / compute[-1])
    if change <= least_fall(_noise_until(x, score, peak + SMOOTHED_READINGS, floor)):
        return None

    index, cusum = peak + SMOOTHED_READINGS // 2, 0.0
    for t in range(index + 1, score.size):
        expected, variance = _forecasts(x, score, t, peak_score=means[peak], floor=floor)
        z = np.min((score[t] - expected) / np.sqrt(variance))
        cusum = max(0.0, cusum - max(z, -LARGEST_ERROR) - CUSUM_SLACK)
        if cusum == 0:
            index = t
        if cusum > CUSUM_LIMIT:
            return Collapse(index=index, alarm=t)
    return None


def least_fall(noise: ReadingNoise) -> float:
    """Smallest difference between two means of three readings that counts as a change of score."""
    return LEAST_FALL * float(np.sqrt(2 * noise.of_smoothed))


def forecasts_by_law(x: np.ndarray, y: np.ndarray, x_next: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """The score expected at each `x_next` from eq. 1 fitted to `y` at `x` = ln C, and the variance of its error, by the
    delta method.

    variance = variance of a reading + long-run variance * j' (J' J)^-1 j, J the Jacobian of the fit, j that at x_next.
    """
    fit = solve(SIGMOID, x - x[-1], y, variance=1.0, prior=Prior())
    noise = noise_of_fit(fit, floor)
    p, q = fit.p + x[-1], fit.q
    g = SIGMOID.basis(x_next, np.array(p), np.array(q))
    g_p, g_q = SIGMOID.gradient(x_next, p, q)
    weights = np.stack([np.ones(g.size), g, fit.a * g_p, fit.a * g_q], axis=1) @ np.linalg.pinv(fit.jacobian)
    return fit.r + fit.a * g, noise.variance + noise.long_run * np.sum(weights**2, axis=1)


def noise_of_fit(fit: Solution, floor: float) -> ReadingNoise:
    """The noise of the fitted readings, corrected for the degrees of freedom of the fit.

        variance = e' e / (n - 4),    rho = (sum e_i e_(i+1) + variance sum H_(i, i+1)) / ((n - 1) variance)

    H = J (J' J)^-1 J' is the part of white noise that the fit absorbs: E e e' = variance (I - H). For fewer than
    LEAST_MEASURED readings, the noise is at least that of their second differences.
    """
    e, n = fit.residuals, fit.residuals.size
    variance = float(e @ e) / (n - NUM_PARAMETERS)
    if n < LEAST_MEASURED:
        assumed = noise_of_second_differences(e, floor)
        if assumed.variance >= variance:
            return assumed
    if variance <= floor:
        return ReadingNoise(variance=floor)
    absorbed = variance * float(np.trace(fit.jacobian @ np.linalg.pinv(fit.jacobian), offset=1))
    rho = (float(e[1:] @ e[:-1]) + absorbed) / ((n - 1) * variance)
    return ReadingNoise(variance=variance, autocorrelation=min(max(rho, 0.0), LARGEST_AUTOCORRELATION))


def noise_of_second_differences(y: np.ndarray, floor: float) -> ReadingNoise:
    """The noise of too few readings to fit, from y_(i-1) - 2 y_i + y_(i+1), which a trend does not affect.

    variance = mean square / (6 - 8 rho + 2 rho^2), with an assumed autocorrelation.
    """
    rho = ASSUMED_AUTOCORRELATION
    variance = float(np.mean(np.diff(y, 2) ** 2)) / (6 - 8 * rho + 2 * rho**2)
    return ReadingNoise(variance=max(variance, floor), autocorrelation=rho)


def _noise_until(x: np.ndarray, y: np.ndarray, end: int, floor: float) -> ReadingNoise:
    if end < LEAST_FITTED:
        return noise_of_second_differences(y, floor)
    return noise_of_fit(solve(SIGMOID, x[:end] - x[end - 1], y[:end], variance=1.0, prior=Prior()), floor)


def _forecasts(
    x: np.ndarray, y: np.ndarray, t: int, *, peak_score: float, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores that reading t should reach: the law at t and at t - 3; the peak if there are too few readings to fit."""
    end = t - LAG + 1
    if end >= LEAST_FITTED:
        return forecasts_by_law(x[:end], y[:end], x[[end - 1, t]], floor)
    noise = noise_of_second_differences(y[: t + 1], floor)
    return np.array([peak_score]), np.array([noise.variance + noise.of_smoothed])
