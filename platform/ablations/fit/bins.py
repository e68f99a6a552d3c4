"""Curves of more readings than a fit can weigh, as means within bins of compute."""

import numpy as np

from ablations.fit.curve import Curve

MOST_READINGS = 1000
"""The noise of n readings is a matrix of n x n."""
NUM_BINS = 300


def binned(curve: Curve, fit_from: float, fit_to: float) -> Curve:
    """The curve itself, or where over a thousand readings lie in (fit_from, fit_to] a curve of means.

    The readings before, in and after the window are each shared out over at most 300 bins, neighbours by compute and
    equally many in each, so that all bins are equally noisy. Compute and score of a bin are means, its samples the sum,
    and the variance that m readings owe to their answers is a m-th of their mean.
    The reading at compute 0 stays as it is.
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
