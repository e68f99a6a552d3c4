"""Turns a curve into a fit: window, least squares, noise, posterior, verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from scipy.special import chdtrc

from ablations.errors import AblationsError
from ablations.fit.alternatives import alternatives, density_deviance_of_1
from ablations.fit.asymptote import RESOLVED_WIDTH, Verdict, verdict_on_interval
from ablations.fit.bins import binned
from ablations.fit.ceiling import averaged_ceiling
from ablations.fit.curve import Curve
from ablations.fit.cutoff import automatic_cutoff, cutoff_before, num_early
from ablations.fit.ends import ends_around
from ablations.fit.engine.anchor import anchor_deviance, anchors
from ablations.fit.engine.ceiling_profile import CHI_SQUARED_95, ceiling_profile
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.lack_of_fit import lack_of_fit
from ablations.fit.engine.noise import AR1, LEAST_SD, Noise, lag_1_autocorrelation, noise_grid, one_blas_thread
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import Prior, Solution, solve
from ablations.fit.engine.zoom import ROUGH
from ablations.fit.huber import huberised
from ablations.fit.law_fit import CurveSet, LawFit
from ablations.fit.options import MIN_READINGS, Auto, FitLoss, FitSettings, R0Mode
from ablations.fit.readings import Readings
from ablations.fit.result import Fit
from ablations.fit.window import Window, select_window

RISE_PARAMETERS = 3
"""Parameters of the curve that a flat line lacks."""
FLAT = 0.05
"""p-value of flat lines below which curves rise."""
NUM_WITHOUT_SHAPE = 2
"""Number of first readings, including the one before RL. If they hold the whole rise of a curve, no law gives its
ceiling: two readings show that the curve rose, not how."""
LEAST_RISE = 0.05
"""Maximum apparent rise of a flat curve, in pass rate; a curve with a larger apparent rise is too noisy to tell."""
NUM_CUTOFFS = 6
NUM_LOWER = 33
"""Number of ceilings tried for a lower bound."""
ABOVE = 3.0
"""Standard errors by which the mean of the last readings may exceed a known ceiling."""
EDGE = 0.1
"""An interval of ln C_mid or ln B that ends this close to the edge of the search range counts as open there."""


def fit_curve(
    curve: Curve,
    *,
    fit_from: float | Auto = 0.0,
    fit_to: float = float("inf"),
    r0: R0Mode = "anchored",
    loss: FitLoss = "squares",
    ceiling: float | None = None,
    through_collapse: bool = False,
) -> Fit:
    """Fit ScaleRL eq. 1 to the readings with compute in (fit_from, fit_to], with its posterior.

    `fit_from="auto"` starts where the readings begin to follow the law (`ablations.fit.cutoff`). `r0` ties R_0 to the
    reading at compute 0, which is used even if `fit_from` is above 0: "fixed" takes it as R_0, "anchored" as a reading
    of R_0 that may lie off the law, "free" ignores it. `loss` is "squares", or "huber" for readings with outliers.
    `ceiling` is a pass rate that the task cannot exceed, and so the upper limit of A. More than a thousand readings are
    binned (`ablations.fit.bins`). `through_collapse` skips the search for a collapse, for a window known to end before
    one. Raises AblationsError with the number of readings needed if there are too few, or if they lie above the
    ceiling.
    """
    settings = FitSettings(fit_from=fit_from, fit_to=fit_to, r0=r0, loss=loss, ceiling=ceiling)
    return fit_with(curve, settings, through_collapse=through_collapse)


@one_blas_thread
def fit_with(curve: Curve, settings: FitSettings, *, through_collapse: bool = False) -> Fit:
    """Fit a curve like `fit_curve`, with the settings as one object."""
    settings = replace(settings, task=None)  # which task the curve is of is the caller's
    if settings.fit_from == "auto":
        return automatic_cutoff(curve, fit=lambda fit_from: fit_with(curve, replace(settings, fit_from=fit_from)))
    fit_from, fit_to, r0, ceiling = settings.fit_from, settings.fit_to, settings.r0, settings.ceiling
    whole, curve = curve, binned(curve, fit_from, fit_to)
    window, readings = _read(curve, settings, through_collapse=through_collapse)
    # In units of the highest pass rate, the upper bound of everything below is 1; `Fit` has pass rates.
    unit = settings.highest
    found = _estimate(readings.over(unit))
    x, C_max, best, draws, noise = found.readings.x, float(window.compute[-1]), found.best, found.draws, found.noise
    B_lo, B_hi = _ends(draws.q, SIGMOID.box(x)[1], best.q)
    C_mid_lo, C_mid_hi = _ends(draws.p, SIGMOID.box(x)[0], best.p, unit=C_max)
    deviance_of_1 = math.inf if ceiling is not None else _deviance_of_1(found, is_open=C_mid_hi is None)
    A_lo, A_hi = _ceiling_interval(found, is_open=deviance_of_1 < CHI_SQUARED_95)
    A, A_draws = best.r + best.a, draws.r + draws.a
    others = alternatives(
        found.readings,
        noise=noise,
        noises=found.noises,
        variance=found.rough_variance,
        num_draws=draws.r.size,
        eq1_deviance_of_1=deviance_of_1,
    )
    rise_deviance = _rise_deviance(found)
    later_rise_deviance = _later_rise_deviance(found, NUM_WITHOUT_SHAPE - int(window.start_score is not None))
    averaged = averaged_ceiling(A, (A_lo, A_hi), A_draws, others).times(unit)
    R_0_lo, R_0_hi = (unit * float(end) for end in ends_around(best.r, draws.r))
    return Fit(
        curve=curve,
        binned_from=None if curve is whole else int(np.sum((whole.compute > fit_from) & (whole.compute <= fit_to))),
        eq1_A=unit * A,
        eq1_lo=unit * A_lo,
        eq1_hi=None if A_hi is None else unit * A_hi,
        B=float(np.exp(best.q)),
        B_lo=B_lo,
        B_hi=B_hi,
        C_mid=float(C_max * np.exp(best.p)),
        C_mid_lo=C_mid_lo,
        C_mid_hi=C_mid_hi,
        R_0=unit * best.r,
        R_0_lo=R_0_lo,
        R_0_hi=R_0_hi,
        ceiling=averaged,
        alternatives=others.times(unit),
        eq1_p=lack_of_fit(x, found.readings.score, best, noise),
        verdict=_verdict(
            averaged.lo,
            averaged.hi,
            collapsed=window.collapsed,
            fell=window.fell,
            rises=rises_beyond_chance([rise_deviance]),
            is_rise_seen=rises_beyond_chance([later_rise_deviance]),
            rise=_seen_rise(window.score, window.start_score),
        ),
        rise_deviance=rise_deviance,
        later_rise_deviance=later_rise_deviance,
        r0=r0 if window.start_score is not None else "free",
        r0_slack=found.r0_slack,
        residuals=unit * ((window.score - readings.score) / unit + best.residuals),
        noise_sd=unit * float(np.sqrt(noise.variance)),
        autocorrelation=noise.autocorrelation,
        settings=settings,
        readings=readings,
        draws=_curve_set(draws, unit=unit, C_max=C_max),
    )


@one_blas_thread
def fit_law(curve: Curve, settings: FitSettings, *, num_draws: int) -> LawFit:
    """Eq. 1's draws for the readings of a window, fewer and from coarser grids than those of `fit_with`. Raises
    AblationsError where that does, and for a collapsed curve, whose readings before the collapse foretell nothing.
    """
    settings = replace(settings, task=None)
    if settings.fit_from == "auto":
        return fit_with(curve, settings)
    curve = binned(curve, settings.fit_from, settings.fit_to)
    window, readings = _read(curve, settings)
    if window.collapsed:
        raise AblationsError(f"curve {curve.name!r}: it collapsed after compute {window.compute[-1]:g}")
    unit = settings.highest
    scaled = readings.over(unit)
    noises, variance = noises_to_weigh(_free(scaled, is_rough=True).residuals, scaled, is_rough=True)
    draws = sample(
        SIGMOID,
        scaled.x,
        scaled.score,
        noise=noises,
        anchors=scaled.anchors,
        variance=variance,
        num_draws=num_draws,
        fineness=ROUGH,
    )
    drawn = _curve_set(draws, unit=unit, C_max=float(window.compute[-1]))
    return LawFit(curve=curve, settings=settings, readings=readings, draws=drawn)


def _read(curve: Curve, settings: FitSettings, *, through_collapse: bool = False) -> tuple[Window, Readings]:
    """The window of a curve and its readings to fit; AblationsError if the settings or the readings cannot be used."""
    assert settings.fit_from != "auto"
    window = select_window(curve, settings.fit_from, settings.fit_to, through_collapse=through_collapse)
    _check_modes(curve, window.start_score, settings.r0, settings.loss)
    _check_ceiling(curve, window, settings.ceiling)
    return window, _readings(window, settings.r0, settings.loss)


def _curve_set(draws: Draws, *, unit: float, C_max: float) -> CurveSet:
    A = unit * (draws.r + draws.a)
    return CurveSet(A=A, B=np.exp(draws.q), C_mid=C_max * np.exp(draws.p), R_0=unit * draws.r)


def fits_by_cutoff(fit: Fit) -> dict[float, Fit]:
    """How much a fit depends on its cut-off: the fits from none, its own, and others up to the last 60 %."""
    compute = fit.curve.compute[(fit.curve.compute > 0) & (fit.curve.compute <= fit.window[1])]
    latest = min(num_early(compute.size), compute.size - MIN_READINGS)
    firsts = {round(index) for index in np.linspace(0, latest, NUM_CUTOFFS)}
    firsts.add(int(np.searchsorted(compute, fit.window[0])))
    # Keep the fit's own end: from another start a collapse may be found elsewhere, or not at all.
    settings = replace(fit.settings, fit_to=fit.window[1])
    return {
        fit_from: fit_with(fit.curve, replace(settings, fit_from=fit_from), through_collapse=fit.verdict != "fell")
        for fit_from in sorted({cutoff_before(compute, first) for first in firsts})
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """The engine's result: draws from the posterior, and the best curve given its mean noise."""

    readings: Readings
    draws: Draws
    noise: AR1
    prior: Prior
    """Prior of R_0 from the likelier anchor."""
    best: Solution
    r0_slack: float | None
    noises: Noise
    """All noise models that the fit averages over."""
    rough_variance: float
    """Rough variance of a reading, inflated so that readings may be treated as independent."""


def _estimate(readings: Readings) -> Estimate:
    x, y = readings.x, readings.score
    noises, rough_variance = noises_to_weigh(_free(readings).residuals, readings)
    draws = sample(SIGMOID, x, y, noise=noises, anchors=readings.anchors, variance=rough_variance)
    noise = AR1(
        y.size,
        sampling_variance=readings.sampling_variance,
        run_variance=draws.run_variance,
        rho=draws.run_autocorrelation,
    )
    r0_slack = float(np.mean(draws.anchor == 1)) if len(readings.anchors) == 2 else None
    likelier = readings.anchors[int(r0_slack is not None and r0_slack > 0.5)]
    prior = likelier.prior(noise.run_variance)
    best = solve(SIGMOID, x, y, variance=noise.variance, prior=prior)
    return Estimate(
        readings=readings,
        draws=draws,
        noise=noise,
        prior=prior,
        best=best,
        r0_slack=r0_slack,
        noises=noises,
        rough_variance=rough_variance,
    )


def _free(readings: Readings, *, is_rough: bool = False) -> Solution:
    """The best curve by least squares, without an anchor."""
    return solve(SIGMOID, readings.x, readings.score, variance=1.0, prior=Prior(), is_rough=is_rough)


def _readings(window: Window, r0: R0Mode, loss: FitLoss) -> Readings:
    y = huberised(np.log(window.compute / window.compute[-1]), window.score) if loss == "huber" else window.score
    return Readings(
        compute=window.compute,
        score=y,
        sampling_variance=0.0 if window.sampling_variance is None else float(window.sampling_variance.mean()),
        anchors=tuple(anchors(window.start_score, window.start_variance, r0)),
    )


def _check_modes(curve: Curve, start_score: float | None, r0: R0Mode, loss: FitLoss) -> None:
    for name, value, known in (("r0", r0, get_args(R0Mode)), ("loss", loss, get_args(FitLoss))):
        if value not in known:
            raise AblationsError(f"curve {curve.name!r}: unknown {name} {value!r}; choose one of {list(known)}")
    if start_score is None and r0 == "fixed":
        raise AblationsError(f"curve {curve.name!r}: r0 'fixed' needs an evaluation at compute 0; the curve has none")


def _check_ceiling(curve: Curve, window: Window, ceiling: float | None) -> None:
    """Raise AblationsError if the readings contradict the ceiling: readings may scatter about it, but their mean may
    not exceed it."""
    if ceiling is None:
        return
    if not 0 < ceiling <= 1:
        raise AblationsError(f"curve {curve.name!r}: ceiling {ceiling:g}; a ceiling must lie in (0, 1]")
    last = window.score[-max(window.score.size // 3, 2) :]
    if last.mean() - ABOVE * last.std(ddof=1) / np.sqrt(last.size) > ceiling:
        raise AblationsError(
            f"curve {curve.name!r}: the last {last.size} evaluations have a mean of {last.mean():.3f}, above the "
            f"ceiling {ceiling:g}; pass a higher ceiling, or none"
        )


def noises_to_weigh(residuals: np.ndarray, readings: Readings, *, is_rough: bool = False) -> tuple[Noise, float]:
    """The noises to average over, and a rough variance with which readings may be treated as independent."""
    num = residuals.size
    variance = float(residuals @ residuals) / (num - SIGMOID.num_parameters)
    variance = max(variance, readings.sampling_variance, LEAST_SD**2)
    grid = noise_grid(num, sampling_variance=readings.sampling_variance, residual_variance=variance, is_rough=is_rough)
    rho = lag_1_autocorrelation(residuals, SIGMOID.num_parameters)
    return grid, variance * (1 + rho) / (1 - rho)


def _seen_rise(score: np.ndarray, start_score: float | None) -> float:
    """Mean of the last third of the readings minus that of the first third, or minus the start if that is lower."""
    third = max(score.size // 3, 1)
    first = float(score[:third].mean())
    return float(score[-third:].mean()) - (first if start_score is None else min(first, start_score))


def rises_beyond_chance(deviances: Sequence[float]) -> bool:
    """True if curves explain their readings better than flat lines R_C = R_0, by a likelihood-ratio test at 5 %: for
    runs that do not rise, the sum of their deviances is chi-squared with RISE_PARAMETERS degrees of freedom for each.
    """
    return float(chdtrc(RISE_PARAMETERS * len(deviances), sum(deviances))) < FLAT


def _rise_deviance(found: Estimate) -> float:
    """Twice the log likelihood ratio of the best curve to a flat line."""
    readings, noise, best = found.readings, found.noise, found.best

    def deviance(residuals: np.ndarray, R_0: float) -> float:
        return noise.deviance(residuals) + float(anchor_deviance(readings.anchors, R_0, noise.run_variance))

    priors = [anchor.prior(noise.run_variance) for anchor in readings.anchors]
    levels = [noise.best_level(readings.score, prior) for prior in priors]
    flat = min(deviance(readings.score - level, level) for level in levels)
    return flat - deviance(best.residuals, best.r)


def _later_rise_deviance(found: Estimate, first: int) -> float:
    """Twice the log likelihood ratio of the best curve to a flat line, over the readings from `first` on."""
    y, noise = found.readings.score[first:], found.noise
    noise = AR1(
        y.size,
        sampling_variance=found.readings.sampling_variance,
        run_variance=noise.run_variance,
        rho=noise.rho,
    )
    return noise.deviance(y - noise.best_level(y, Prior())) - noise.deviance(found.best.residuals[first:])


def _ends(
    values: np.ndarray, side: tuple[float, float], estimate: float, unit: float = 1.0
) -> tuple[float | None, float | None]:
    """The 95 % interval of e^values, without an end that the search range cuts off."""
    lo, hi = ends_around(estimate, values)
    below = None if lo < side[0] + EDGE else float(unit * np.exp(lo))
    return below, None if hi > side[1] - EDGE else float(unit * np.exp(hi))


def _ceiling_interval(found: Estimate, *, is_open: bool) -> tuple[float, float | None]:
    """The interval of A, without an upper end if a ceiling of 1 is not ruled out."""
    draws, best = found.draws, found.best
    A = best.r + best.a
    A_lo, A_hi = map(float, ends_around(A, draws.r + draws.a))
    if not is_open:
        return A_lo, A_hi
    # A lone lower bound must not depend on the prior of B either.
    lower = np.linspace(best.r, A_lo, NUM_LOWER)
    allowed = lower[_profile(found, lower) - _profile(found, np.array([A])) < CHI_SQUARED_95]
    return float(min([A_lo, *allowed])), None


def _deviance_of_1(found: Estimate, *, is_open: bool) -> float:
    """Twice the log likelihood ratio of the best ceiling to one of 1, by the profile, which ignores the prior of B, or
    by the posterior density if that ratio is smaller. 0 if C_mid has no upper end.

    If the curve itself has come near 1, the upper end is at most 1, since no pass rate exceeds it.
    """
    if _is_at_the_top(found, float(np.quantile(found.draws.r + found.draws.a, 0.025))):
        return math.inf
    if is_open:
        return 0.0
    at_best, at_1 = _profile(found, np.array([found.best.r + found.best.a, 1.0]))
    return min(float(at_1 - at_best), density_deviance_of_1(found.draws))


def _profile(found: Estimate, A: np.ndarray) -> np.ndarray:
    """The least deviance at each ceiling."""
    return ceiling_profile(SIGMOID, found.readings.x, found.readings.score, A, noise=found.noise, prior=found.prior)


def _is_at_the_top(found: Estimate, A_lo: float) -> bool:
    """True if the curve itself has come near 1, so that 1 is the upper end of A under any law."""
    reached = float(np.quantile(found.draws.level_at_end(), 0.025))
    return A_lo >= 1 - RESOLVED_WIDTH and reached >= 1 - 2 * RESOLVED_WIDTH


def _verdict(
    A_lo: float, A_hi: float | None, *, collapsed: bool, fell: bool, rises: bool, is_rise_seen: bool, rise: float
) -> Verdict:
    """The verdict on a fit; `rise` is the apparent rise of the readings."""
    if collapsed:
        return "collapsed"
    if fell:
        return "fell"
    if not rises:
        return "no rise" if rise < LEAST_RISE else "too noisy to tell"
    return verdict_on_interval(A_lo, A_hi, is_rise_seen=is_rise_seen)
