"""Describes a fit in one paragraph: its result, its certainty, and reasons to doubt it."""

from collections.abc import Sequence

import numpy as np

from ablations.fit.ends import ends_around
from ablations.fit.result import MUCH_AUTOCORRELATION, OFF_THE_LAW, Fit
from ablations.text import capitalised, compute_text, interval_text


def in_words(fit: Fit, unit: str = "") -> str:
    """The paragraph; `unit` follows every compute value, for example " GPU-hours"."""
    parts = [_what(fit, unit), _reach(fit), _noise(fit), other_prompts([fit]), _start(fit)]
    if fit.verdict == "collapsed":
        parts.insert(1, "Then the score falls: the run collapsed. Only the evaluations before the fall are fitted.")
    parts += [f"{capitalised(text)}." for text in fit.oddities]
    return " ".join(part for part in parts if part)


def _what(fit: Fit, unit: str) -> str:
    first, last = fit.window
    of_what = "evaluations" if fit.binned_from is None else f"bins that average {fit.binned_from:,} evaluations"
    fitted = f"{fit.points} {of_what} from {compute_text(first)} to {compute_text(last)}{unit}"
    if fit.verdict == "fell":
        return f"{fitted} fall: the last ones lie below the highest before them, so the curve has no ceiling."
    if not fit.rises:
        return f"{fitted} do not rise: a flat line explains them as well as eq. 1 does."
    ends = "" if fit.B_lo is None or fit.B_hi is None else f" [{fit.B_lo:.2f}, {fit.B_hi:.2f}]"
    half = f", half of the gain at C_mid {compute_text(fit.C_mid)}{unit}" if fit.has_midpoint else ""
    said = f"Eq. 1 on {fitted}: {fit.asymptote_under_eq1}{half}, B {fit.B:.2f}{ends}."
    weight = f"with a weight of {fit.alternatives.eq1_weight:.2f} for eq. 1"
    said += f" Averaged over all families that fit, {weight}: {fit.asymptote}."
    if fit.doubts_eq1:
        said += f" Eq. 1 is doubted: if it were the law, such residuals would have a probability of {fit.eq1_p:.3f}."
    return f"{said} {MEANINGS[fit.verdict]}" if fit.verdict in MEANINGS else said


MEANINGS = {
    "level only": "The evaluations are flat from the third on: A is their level, and the way to it was not seen.",
    "roughly known": "The ceiling is bounded but not resolved: its 95 % interval is wider than 0.04.",
    "lower bound only": "The evaluations do not rule out a ceiling of 1: only the lower bound is meaningful.",
}


def _reach(fit: Fit) -> str:
    """The position of the last reading relative to C_mid, and the gain from doubling the compute."""
    if not fit.rises:
        return ""
    last = fit.window[1]
    gain = float(np.diff(fit.predict([last, 2 * last]))[0])
    lo, hi = ends_around(gain, np.diff(fit.predict_draws([last, 2 * last]), axis=1)[:, 0])
    more = f"twice the compute would add {interval_text(gain, float(lo), float(hi), '+.3f')}."
    if not fit.has_midpoint:
        return more.capitalize()
    reach = last / fit.C_mid
    said = f"The last evaluation is at {reach:.1f} C_mid; {more}"
    if reach < least_reach(fit.B) and fit.verdict != "resolved":
        said += (
            f" If eq. 1 is the law, knowing A to ±0.02 takes evaluations up to about {least_reach(fit.B):.0f} C_mid at "
            f"this B, if they scatter by {REACH_NOISE_SD:.3f}."
        )
    return said


REACH_NOISE_SD = 0.006
MEASURED_REACH = {0.8: 46.2, 1.1: 14.5, 1.5: 7.2, 1.9: 5.0, 2.4: 3.8}
"""Smallest C_max / C_mid that resolves A under eq. 1 in four out of five fits, by B (`benchmarks/least_reach.py`)."""


def least_reach(B: float) -> float:
    """Smallest C_max / C_mid at which A is known to about +-0.02; its logarithm is interpolated linearly in B.

    Measured with readings that scatter by REACH_NOISE_SD. Outside the measured B, the nearest value is used.
    """
    return float(np.exp(np.interp(B, list(MEASURED_REACH), np.log(list(MEASURED_REACH.values())))))


def _noise(fit: Fit) -> str:
    sampling = fit.readings.sampling_variance**0.5
    of_samples = f" ({sampling:.4f} from the number of samples alone)" if sampling else ""
    lag_1 = f"lag-1 autocorrelation {fit.autocorrelation:.2f}"
    said = f"An evaluation has a standard deviation of {fit.noise_sd:.4f}{of_samples}; {lag_1}"
    if fit.autocorrelation > MUCH_AUTOCORRELATION:
        return f"{said}: errors of neighbours are correlated, or eq. 1 is not exactly the law of this curve."
    return f"{said}."


def other_prompts(fits: Sequence[Fit]) -> str:
    """Sentence on the effect of other held-out prompts, from the last readings; empty if no curve counts answers by
    prompt."""
    last = [(fit.curve.prompts, fit.curve.prompt_variance, fit.curve.compute == fit.window[1]) for fit in fits]
    known = [
        (float(prompts[at][0]), float(variance[at][0]))
        for prompts, variance, at in last
        if prompts is not None and variance is not None and not np.isnan(variance[at]).any()
    ]
    if not known:
        return ""
    num_prompts, variances = zip(*known, strict=True)
    sd = float(np.mean(variances)) ** 0.5
    return (
        f"Intervals are conditional on these {max(num_prompts):,.0f} held-out prompts; another sample would shift all "
        f"pass rates by about {sd:.3f} (1 sd)."
    )


def _start(fit: Fit) -> str:
    if not fit.rises:
        return ""
    if fit.r0_slack is None:
        return "R_0 is free: there is no evaluation before RL." if fit.r0 == "free" else ""
    if fit.r0_slack > OFF_THE_LAW:
        return f"The early phase is off the law (probability {fit.r0_slack:.2f}): step 0 has little weight."
    return f"The step-0 evaluation lies on the law (probability {1 - fit.r0_slack:.2f})."
