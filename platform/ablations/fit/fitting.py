"""From a curve to a fit: window, noise, best curve, likelihood region, verdict."""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from ablations.curve import Curve
from ablations.errors import AblationsError
from ablations.fit.family import SIGMOID
from ablations.fit.noise import NoiseModel, noise_model
from ablations.fit.projection import Anchor, Solution, anchor_deviance, solve
from ablations.fit.region import Region, deviance_limit, likelihood_region
from ablations.fit.result import RESOLVED_WIDTH, CurveSet, Fit, R0Mode, Verdict, ceiling_verdict
from ablations.fit.window import Window, select_window

NUM_PARAMETERS = 4
SLACK_PROBABILITY = 0.3
SLACK_SD = 0.08
"""Beforehand, three step-0 readings in ten lie off the law, by about this much: an early transient."""
FIXED_VARIANCE_RATIO = 1e-6
LEAST_SD = 1e-5
"""Keeps the deviance finite when a curve goes through its readings exactly; no pass rate is known as well as this."""
FLAT_LIMIT = 7.81
"""95 % point of chi-squared with the three parameters that a flat line lacks."""
AT_CEILING = 1 - 1e-6


def fit_curve(curve: Curve, *, fit_from: float = 0.0, fit_to: float = float("inf"), r0: R0Mode = "anchored") -> Fit:
    """Fit ScaleRL eq. 1 to the readings with compute in (fit_from, fit_to], with 95 % intervals.

    `r0` says how R_0 is tied to the reading at compute 0, which counts whatever `fit_from` is: "fixed" takes it as R_0,
    "anchored" as one more reading of R_0 that may lie off the law, "free" ignores it.

    Raises AblationsError with the number of readings needed when there are too few.
    """
    window = select_window(curve, fit_from, fit_to)
    C_max = window.compute[-1]
    x, y = np.log(window.compute / C_max), window.score
    sampling_variance = 0.0 if window.samples is None else float(np.mean(y * (1 - y) / window.samples))

    free = solve(SIGMOID, x, y, variance=1.0, anchor=Anchor())
    residual_variance = float(free.residuals @ free.residuals) / (y.size - NUM_PARAMETERS)
    residual_variance = max(residual_variance, sampling_variance, LEAST_SD**2)
    noise = noise_model(free.jacobian, sampling_variance=sampling_variance, residual_variance=residual_variance)
    noise_sd, autocorrelation = noise.summary(free.residuals)

    variance = noise_sd**2
    anchors = _anchors(curve, window, r0, reading_variance=variance, variance_of_r=_variance_of_r(noise, free))
    solutions = [(anchor, solve(SIGMOID, x, y, variance=variance, anchor=anchor)) for anchor in anchors]
    best = min((solution for _, solution in solutions), key=lambda s: _deviance(noise, anchors, s.residuals, s.r))
    limit = deviance_limit(y.size - NUM_PARAMETERS)
    region = likelihood_region(SIGMOID, x, y, solutions=solutions, noise=noise, limit=limit)
    A_lo, A_hi = _ceiling_interval(region)
    B_lo, B_hi = _ends(np.exp(region.q), region.open_q)
    C_mid_lo, C_mid_hi = _ends(C_max * np.exp(region.p), region.open_p)
    gain = _flat_deviance(noise, anchors, y, variance) - _deviance(noise, anchors, best.residuals, best.r)
    return Fit(
        curve=curve,
        A=best.r + best.a,
        A_lo=A_lo,
        A_hi=A_hi,
        B=float(np.exp(best.q)),
        B_lo=B_lo,
        B_hi=B_hi,
        C_mid=float(C_max * np.exp(best.p)),
        C_mid_lo=C_mid_lo,
        C_mid_hi=C_mid_hi,
        R_0=best.r,
        R_0_lo=float(region.r.min()),
        R_0_hi=float(region.r.max()),
        verdict=_verdict(A_lo, A_hi, collapsed=window.collapsed, rises=gain > FLAT_LIMIT),
        r0=r0 if window.start_score is not None else "free",
        r0_slack=_slack_probability(noise, solutions) if len(solutions) == 2 else None,
        points=y.size,
        window=(float(window.compute[0]), float(C_max)),
        r_squared=_r_squared(y, best.residuals),
        residuals=best.residuals,
        noise_sd=noise_sd,
        autocorrelation=autocorrelation,
        grid_node=(float(np.exp(best.node[1])), float(C_max * np.exp(best.node[0]))),
        region=CurveSet(A=region.r + region.a, B=np.exp(region.q), C_mid=C_max * np.exp(region.p), R_0=region.r),
    )


def _anchors(
    curve: Curve, window: Window, r0: R0Mode, *, reading_variance: float, variance_of_r: float
) -> list[Anchor]:
    """The priors of R_0: one for each way in which the step-0 reading may bear on it."""
    if r0 not in get_args(R0Mode):
        raise AblationsError(f"curve {curve.name!r}: unknown r0 {r0!r}; choose one of {list(get_args(R0Mode))}")
    value = window.start_score
    if value is None and r0 == "fixed":
        raise AblationsError(f"curve {curve.name!r}: r0 'fixed' needs a reading at compute 0 and there is none")
    if value is None or r0 == "free":
        return [Anchor()]
    if r0 == "fixed":
        # A spike far below the noise keeps one closed form for all modes.
        return [Anchor(value=value, variance=FIXED_VARIANCE_RATIO * reading_variance)]
    sampling_variance = value * (1 - value) / window.start_samples if window.start_samples else 0.0
    tight = max(reading_variance, sampling_variance)
    return [
        _weighed_anchor(value, tight, 1 - SLACK_PROBABILITY, variance_of_r),
        _weighed_anchor(value, tight + SLACK_SD**2, SLACK_PROBABILITY, variance_of_r),
    ]


def _variance_of_r(noise: NoiseModel, free: Solution) -> float:
    """How well the curve alone knows R_0: (J' J)^-1 times the long-run variance of a reading."""
    return noise.long_run_variance(free.residuals) * float(np.linalg.pinv(free.jacobian.T @ free.jacobian)[0, 0])


def _weighed_anchor(value: float, variance: float, probability: float, variance_of_r: float) -> Anchor:
    """An anchor with its weight among others: -2 ln of its prior probability and of what integrating over R_0 leaves.

    For a curve that alone knows R_0 with `variance_of_r`, Laplace's method gives the marginal likelihood
    exp(-D / 2) / sqrt(1 + variance / variance_of_r), D the least deviance under the anchor.
    """
    offset = float(np.log1p(variance / variance_of_r)) - 2 * float(np.log(probability))
    return Anchor(value=value, variance=variance, offset=offset)


def _deviance(noise: NoiseModel, anchors: Sequence[Anchor], residuals: np.ndarray, r: float) -> float:
    return float(noise.deviance(residuals[None])[0] + anchor_deviance(anchors, np.array(r)))


def _flat_deviance(noise: NoiseModel, anchors: Sequence[Anchor], y: np.ndarray, variance: float) -> float:
    """The least deviance of a flat line, R_C = R_0."""
    levels = [
        (y.sum() / variance + anchor.value / anchor.variance) / (y.size / variance + 1 / anchor.variance)
        for anchor in anchors
    ]
    return min(_deviance(noise, anchors, y - level, level) for level in levels)


def _slack_probability(noise: NoiseModel, solutions: Sequence[tuple[Anchor, Solution]]) -> float:
    """Probability of the second anchor, each taken at its own best curve."""
    tight, slack = (_deviance(noise, [anchor], solution.residuals, solution.r) for anchor, solution in solutions)
    return float(np.exp(-np.logaddexp(0, 0.5 * (slack - tight))))


def _ends(values: np.ndarray, is_open: tuple[bool, bool]) -> tuple[float | None, float | None]:
    return None if is_open[0] else float(values.min()), None if is_open[1] else float(values.max())


def _ceiling_interval(region: Region) -> tuple[float, float | None]:
    """The interval of A; no upper end where a ceiling of 1 fits too, or where only the box searched sets one.

    Where all of the interval is within RESOLVED_WIDTH of 1, 1 itself is the upper end: no pass rate exceeds it.
    """
    A = region.r + region.a
    A_lo, A_hi = float(A.min()), float(A.max())
    if A_lo >= 1 - RESOLVED_WIDTH:
        return A_lo, min(A_hi, 1.0)
    if A_hi >= AT_CEILING or region.open_p[1] or region.open_q[0]:
        return A_lo, None
    return A_lo, A_hi


def _verdict(A_lo: float, A_hi: float | None, *, collapsed: bool, rises: bool) -> Verdict:
    if collapsed:
        return "collapsed"
    if not rises:
        return "no rise"
    return ceiling_verdict(A_lo, A_hi)


def _r_squared(y: np.ndarray, residuals: np.ndarray) -> float:
    spread = float(np.sum((y - y.mean()) ** 2))
    return 1 - float(residuals @ residuals) / spread if spread > 0 else 0.0
