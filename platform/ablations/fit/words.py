"""A fit in one paragraph: what it says, how sure it is, and why one should doubt it."""

from collections.abc import Sequence

import numpy as np

from ablations.fit.result import MUCH_AUTOCORRELATION, OFF_THE_LAW, Fit
from ablations.text import compute_text


def in_words(fit: Fit, unit: str = "") -> str:
    """The paragraph; `unit` follows every compute, for example " GPU-hours"."""
    parts = [_what(fit, unit), _reach(fit), _noise(fit), other_prompts([fit]), _start(fit)]
    if fit.verdict == "collapsed":
        parts.insert(1, "The score falls after that: the run collapsed. Only the readings before the fall are fitted.")
    parts += [f"{text[0].upper()}{text[1:]}." for text in fit.oddities]
    return " ".join(part for part in parts if part)


def _what(fit: Fit, unit: str) -> str:
    first, last = fit.window
    of_what = "readings" if fit.binned_from is None else f"bins with the means of {fit.binned_from:,} readings"
    fitted = f"{fit.points} {of_what} from {compute_text(first)} to {compute_text(last)}{unit}"
    if not fit.rises:
        return f"{fitted} do not rise: a flat line explains them as well as eq. 1."
    ends = "" if fit.B_lo is None or fit.B_hi is None else f" [{fit.B_lo:.2f}, {fit.B_hi:.2f}]"
    half = f", half of the gain at C_mid {compute_text(fit.C_mid)}{unit}" if fit.has_midpoint else ""
    said = f"Eq. 1 on {fitted}: {fit.asymptote_under_eq1}{half}, B {fit.B:.2f}{ends}."
    said += f" Over all families that fit, eq. 1 with a weight of {fit.alternatives.eq1_weight:.2f}: {fit.asymptote}."
    if fit.doubts_eq1:
        said += f" Eq. 1 is doubted: residuals like these come up with probability {fit.eq1_p:.3f} if it is the law."
    return f"{said} {MEANINGS[fit.verdict]}" if fit.verdict in MEANINGS else said


MEANINGS = {
    "weak": "The ceiling is bounded but not resolved: its 95 % interval is wider than 0.04.",
    "lower bound only": "The readings do not rule out a ceiling of 1: only the lower bound counts.",
}


def _reach(fit: Fit) -> str:
    """How far past the bend the readings go, and what twice the compute would add."""
    if not fit.rises:
        return ""
    last = fit.window[1]
    draws = fit.predict_draws([last, 2 * last])
    gain = draws[:, 1] - draws[:, 0]
    lo, hi = (float(end) for end in fit.interval(gain))
    now, later = (float(score) for score in fit.predict([last, 2 * last]))
    more = f"twice the compute would add {later - now:+.3f} [{lo:+.3f}, {hi:+.3f}]."
    if not fit.has_midpoint:
        return more.capitalize()
    reach = last / fit.C_mid
    said = f"The last reading is at {reach:.1f} C_mid; {more}"
    if reach < least_reach(fit.B) and fit.verdict != "resolved":
        said += (
            f" To know A to ±0.02 takes, if eq. 1 is the law, readings up to about {least_reach(fit.B):.0f} C_mid at "
            f"this B, where they scatter by {REACH_NOISE_SD:.3f}."
        )
    return said


REACH_NOISE_SD = 0.006
MEASURED_REACH = {0.8: 46.2, 1.1: 14.5, 1.5: 7.2, 1.9: 5.0, 2.4: 3.8}
"""C_max over C_mid from which A under eq. 1 is resolved in four fits of five, by B (`benchmarks/least_reach.py`)."""


def least_reach(B: float) -> float:
    """C_max over C_mid from which A is known to about +-0.02: as measured, its logarithm linear in B between.

    Readings scattered by REACH_NOISE_SD; beyond the slopes that were measured it is that of the nearest.
    """
    return float(np.exp(np.interp(B, list(MEASURED_REACH), np.log(list(MEASURED_REACH.values())))))


def _noise(fit: Fit) -> str:
    sampling = fit.readings.sampling_variance**0.5
    of_samples = f", {sampling:.4f} of it from the number of samples" if sampling else ""
    said = f"A reading scatters by {fit.noise_sd:.4f}{of_samples}; lag-1 autocorrelation {fit.autocorrelation:.2f}"
    if fit.autocorrelation > MUCH_AUTOCORRELATION:
        return f"{said}: neighbouring readings err together, or eq. 1 is not exactly the law of this curve."
    return f"{said}."


def other_prompts(fits: Sequence[Fit]) -> str:
    """What other held-out prompts would change, by the last readings; empty where none counts answers by prompt."""
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
        f"Intervals are for these {max(num_prompts):,.0f} held-out prompts: another draw would move all pass rates "
        f"together, by a standard deviation of {sd:.3f}."
    )


def _start(fit: Fit) -> str:
    if not fit.rises:
        return ""
    if fit.r0_slack is None:
        return "R_0 is free: no reading before RL says what it is." if fit.r0 == "free" else ""
    if fit.r0_slack > OFF_THE_LAW:
        return f"The early phase is off the law (probability {fit.r0_slack:.2f}): the step-0 reading hardly counts."
    return f"The step-0 reading lies on the law (probability {1 - fit.r0_slack:.2f})."
