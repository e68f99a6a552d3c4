"""Sentences about readings of a fit that look wrong, with advice."""

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtr

from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import lag_1_autocorrelation, one_blas_thread
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.huber import huberised
from ablations.fit.reach import starts_late
from ablations.text import compute_text, counted

FAR_OFF = 6.0
"""Robust standard deviations beyond which a reading is an outlier: one in 10^8 under normal noise."""
LEAST_FOR_OUTLIERS = 12
"""Minimum number of residuals from whose median the noise can be estimated."""
MOST_READINGS_NAMED = 5
LEAST_LIKELY = 0.005
"""Probability below which residuals are too small for the sampling noise that the samples imply."""
FALLING = -3.0
"""Slope of a straight line, in standard errors, below which a curve counts as falling."""
NEAR_WALL = 0.02
"""Distance from the edge of the range of ln B that counts as being at the edge."""
MAD_TO_SD = 1.4826
ROUGHLY = 1e-4
"""Accuracy, in pass rate, of the curve from which outliers are measured."""


@one_blas_thread
def oddities(
    compute: np.ndarray,
    score: np.ndarray,
    residuals: np.ndarray,
    *,
    start: float,
    sampling_variance: float,
    B: float,
    rises: bool,
) -> list[str]:
    """Sentences without a full stop; none if nothing is wrong. `start` is the first compute of the curve."""
    found = [
        _sampling(residuals, sampling_variance),
        _outliers(compute, score),
        "" if rises else _fall(compute, score) or _late(start, float(compute[-1])),
        _wall(compute, B) if rises else "",
    ]
    return [text for text in found if text]


def outliers(compute: np.ndarray, score: np.ndarray) -> Sequence[int]:
    """Indices of readings far off a curve through the others: Huber's fit, with a scale from the median."""
    if score.size < LEAST_FOR_OUTLIERS:
        return []
    x = np.log(compute / compute[-1])
    pseudo = huberised(x, score, tolerance=ROUGHLY)
    off = score - (pseudo - solve(SIGMOID, x, pseudo, variance=1.0, prior=Prior()).residuals)
    sd = MAD_TO_SD * float(np.median(np.abs(off))) * np.sqrt(score.size / (score.size - SIGMOID.num_parameters))
    return [int(place) for place in np.flatnonzero(np.abs(off) > FAR_OFF * max(sd, 1e-6))]


def _outliers(compute: np.ndarray, score: np.ndarray) -> str:
    places = outliers(compute, score)
    if not places:
        return ""
    named = ", ".join(f"{score[place]:.3f} at {compute_text(compute[place])}" for place in places[:MOST_READINGS_NAMED])
    more = f" and {len(places) - MOST_READINGS_NAMED} more" if len(places) > MOST_READINGS_NAMED else ""
    verb, object_ = ("lies", "that evaluation") if len(places) == 1 else ("lie", "these evaluations")
    return (
        f"{counted(len(places), 'evaluation')} {verb} far from the others ({named}{more}): "
        f"delete {object_} if the evaluation failed, or fit with loss: huber (--loss huber)"
    )


def _sampling(residuals: np.ndarray, sampling_variance: float) -> str:
    freedom = residuals.size - SIGMOID.num_parameters
    square = float(residuals @ residuals)
    if not sampling_variance or chdtr(freedom, square / sampling_variance) > LEAST_LIKELY:
        return ""
    return (
        f"the evaluations scatter by {(square / freedom) ** 0.5:.4f}, less than the {sampling_variance**0.5:.4f} that "
        "their number of samples implies: samples is too low, or every evaluation uses the same prompts; intervals "
        "are wider, and lower bounds lower, than necessary"
    )


def _fall(compute: np.ndarray, score: np.ndarray) -> str:
    """A warning if a straight line through the readings falls: its slope over its standard error under AR(1) noise."""
    centred = compute - compute.mean()
    slope = float(centred @ score) / float(centred @ centred)
    residuals = score - score.mean() - slope * centred
    rho = lag_1_autocorrelation(residuals, 2)
    variance = float(residuals @ residuals) / (score.size - 2) * (1 + rho) / (1 - rho)
    if slope >= FALLING * (variance / float(centred @ centred)) ** 0.5:
        return ""
    third = max(score.size // 3, 1)
    first, last = float(score[:third].mean()), float(score[-third:].mean())
    return (
        f"the score falls from {first:.3f} in the first third to {last:.3f} in the last, which eq. 1 cannot describe; "
        "look for the cause, or fit only the evaluations before the fall (--to)"
    )


def _late(start: float, last: float) -> str:
    if not starts_late(start, last):
        return ""
    return (
        f"compute starts at {start:,.10g}, far from 0, where eq. 1 hardly bends; if training started there, subtract "
        "that number from compute"
    )


def _wall(compute: np.ndarray, B: float) -> str:
    lo, hi = SIGMOID.box(np.log(compute))[1]
    if lo + NEAR_WALL < np.log(B) < hi - NEAR_WALL:
        return ""
    return (
        f"B is at the edge of its search range, {np.exp(lo):.1f} to {np.exp(hi):.0f}: the evaluations do not show how "
        "the curve bends, and the interval of B depends on the prior"
    )
