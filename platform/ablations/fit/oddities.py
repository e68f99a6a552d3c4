"""What looks wrong with the readings of a fit, in words, with what would put it right."""

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtr

from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import lag_1_autocorrelation
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.reach import starts_late
from ablations.fit.readings import huberised
from ablations.text import compute_text, counted

FAR_OFF = 6.0
"""Standard deviations, by the median, beyond which a reading is an outlier; of normal noise one in 10^8 is."""
LEAST_FOR_OUTLIERS = 12
"""The median of fewer residuals says too little of the noise."""
MOST_READINGS_NAMED = 5
LEAST_LIKELY = 0.005
"""Residuals as small as this seldom are under the sampling noise that the samples imply."""
FALLING = -3.0
"""Standard errors of the slope of a straight line below which a curve falls."""
NEAR_WALL = 0.02
"""In ln B."""
MAD_TO_SD = 1.4826


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
    """Sentences without a full stop; none for readings as they should be. `start` is the first compute of the curve."""
    found = [
        _sampling(residuals, sampling_variance),
        _outliers(compute, score),
        "" if rises else _fall(compute, score) or _late(start, float(compute[-1])),
        _wall(compute, B) if rises else "",
    ]
    return [text for text in found if text]


def outliers(compute: np.ndarray, score: np.ndarray) -> Sequence[int]:
    """The places of readings that lie far off the curve through the others: Huber's fit, scale by the median."""
    if score.size < LEAST_FOR_OUTLIERS:
        return []
    x = np.log(compute / compute[-1])
    pseudo = huberised(x, score)
    off = score - (pseudo - solve(SIGMOID, x, pseudo, variance=1.0, prior=Prior()).residuals)
    sd = MAD_TO_SD * float(np.median(np.abs(off))) * np.sqrt(score.size / (score.size - SIGMOID.num_parameters))
    return [int(place) for place in np.flatnonzero(np.abs(off) > FAR_OFF * max(sd, 1e-6))]


def _outliers(compute: np.ndarray, score: np.ndarray) -> str:
    places = outliers(compute, score)
    if not places:
        return ""
    named = ", ".join(f"{score[place]:.3f} at {compute_text(compute[place])}" for place in places[:MOST_READINGS_NAMED])
    more = f" and {len(places) - MOST_READINGS_NAMED} more" if len(places) > MOST_READINGS_NAMED else ""
    verb, object_ = ("lies", "it") if len(places) == 1 else ("lie", "them")
    return (
        f"{counted(len(places), 'reading')} {verb} far off the others ({named}{more}): "
        f"delete {object_} if the evaluation failed, or fit with loss: huber (--loss huber)"
    )


def _sampling(residuals: np.ndarray, sampling_variance: float) -> str:
    freedom = residuals.size - SIGMOID.num_parameters
    square = float(residuals @ residuals)
    if not sampling_variance or chdtr(freedom, square / sampling_variance) > LEAST_LIKELY:
        return ""
    return (
        f"the readings scatter by {(square / freedom) ** 0.5:.4f}, less than the {sampling_variance**0.5:.4f} that "
        "their number of samples implies: samples is too low, or every evaluation asks the same prompts, and intervals "
        "and lower bounds reach further than they need to"
    )


def _fall(compute: np.ndarray, score: np.ndarray) -> str:
    """Whether a straight line through the readings falls: its slope over its standard error under AR(1) noise."""
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
        f"the score falls, from {first:.3f} in the first third to {last:.3f} in the last, and eq. 1 cannot: "
        "look for what broke, or fit only what comes before (--to)"
    )


def _late(start: float, last: float) -> str:
    if not starts_late(start, last):
        return ""
    return (
        f"its compute starts at {start:,.10g}, far from 0, where eq. 1 hardly bends: if training started there, "
        "subtract that from compute"
    )


def _wall(compute: np.ndarray, B: float) -> str:
    lo, hi = SIGMOID.box(np.log(compute))[1]
    if lo + NEAR_WALL < np.log(B) < hi - NEAR_WALL:
        return ""
    return (
        f"B is at the end of the range searched, {np.exp(lo):.1f} to {np.exp(hi):.0f}: the readings do not show how "
        "the curve bends, and its interval rests on the prior"
    )
