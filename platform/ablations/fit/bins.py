"""Averages curves with more readings than a fit can handle, within bins of compute."""

import numpy as np

from ablations.fit.curve import Curve

MOST_READINGS = 1000
"""Limit on the readings of one fit, because the noise of n readings is an n x n matrix."""
NUM_BINS = 300


def binned(curve: Curve, fit_from: float, fit_to: float) -> Curve:
    """The curve itself; if over a thousand readings lie in (fit_from, fit_to], a curve of bin means.

    The readings before, in and after the window are each divided into at most 300 bins of neighbours, with equally many
    readings in each so that all bins are equally noisy. A bin has the mean compute and score, the sum of the samples,
    and 1/m of the mean answer variance of its m readings. The reading at compute 0 is kept as it is.
    """
    inside = (curve.compute > fit_from) & (curve.compute <= fit_to)
    if np.count_nonzero(inside) <= MOST_READINGS:
        return curve
    places = np.arange(curve.compute.size)
    after_start = curve.compute > 0
    parts = [
        places[after_start & (curve.compute <= fit_from)],
        places[after_start & inside],
        places[after_start & (curve.compute > fit_to)],
    ]
    bins = [places[~after_start]] if curve.compute[0] == 0 else []
    for part in parts:
        if part.size:
            each = -(-part.size // NUM_BINS)
            bins += np.array_split(part, -(-part.size // each))

    sizes = np.array([one.size for one in bins])

    def means(values: np.ndarray) -> np.ndarray:
        return np.array([values[one].mean() for one in bins])

    return Curve(
        name=curve.name,
        compute=means(curve.compute),
        score=np.clip(means(curve.score), 0, 1),
        samples=None if curve.samples is None else np.array([curve.samples[one].sum() for one in bins]),
        prompts=None if curve.prompts is None else means(curve.prompts),
        step=None if curve.step is None else means(curve.step),
        answer_variance=None if curve.answer_variance is None else means(curve.answer_variance) / sizes,
        prompt_variance=None if curve.prompt_variance is None else means(curve.prompt_variance),
    )
