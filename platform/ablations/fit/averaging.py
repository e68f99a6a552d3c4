"""Model error of forecasts: the other families, weighted by how well they fit the same readings.

Within the readings only eq. 1 is used. Far beyond them nobody knows which family holds; over published learning curves
none was best everywhere. Between one and two times the largest fitted compute the other families are blended in; from
there on a band is that of a mixture, with each family's Akaike weight. The other families only widen the band:
`ablations.answers.forecasts` takes its estimates from eq. 1 while that lies well within the band.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ablations.fit.alternatives import Alternative
from ablations.fit.result import Fit

WHOLE_FROM = 2.0
"""Ratio to the largest fitted compute from which the other families have their full weight."""


def averaged_draws(fit: Fit, compute: np.ndarray | float, share: np.ndarray | float | None = None) -> np.ndarray:
    """Pass rate of every draw at each compute, in [0, known ceiling], shape (num_draws, num_compute).

    Each family has draws in proportion to its weight. A draw of another family f is (1 - s) R_C + s f(C), where R_C is
    a draw of eq. 1 and s is `model_error_share`. `share` fixes s, as slopes need.
    """
    compute = np.atleast_1d(np.asarray(compute, dtype=float))
    C_max = fit.window[1]
    s = np.broadcast_to(model_error_share(compute, C_max) if share is None else share, compute.shape)
    beyond = s > 0
    drawn = fit.predict_draws(compute)
    for successor in successors(fit):
        curves = successor.curves(np.log(compute[beyond] / C_max))
        drawn[successor.rows, beyond] += s[beyond] * (curves - drawn[successor.rows, beyond])
    return drawn.clip(0, fit.settings.highest)


def model_error_share(compute: np.ndarray, C_max: float) -> np.ndarray:
    """s = ln(C / C_max) / ln 2 between C_max and 2 C_max, 0 below and 1 above."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(compute / C_max) / np.log(WHOLE_FROM), 0, 1)


@lru_cache(maxsize=256)
def successors(fit: Fit) -> Sequence[Alternative]:
    """The other families with weight given the fit's readings; their draws replace the fit's beyond C_max.

    Cached for the most recent fits, because a sweep uses each many times.
    """
    return [_in_order_of(fit, other) for other in fit.alternatives.others]


def _in_order_of(fit: Fit, other: Alternative) -> Alternative:
    """The family's draws for its rows, ordered like the fit's draws half way through the blend.

    Pairing by rank instead of at random keeps each pair close together, so the band does not narrow within the blend.
    """
    C_max, middle = fit.window[1], np.array([np.sqrt(WHOLE_FROM)])
    own = np.argsort(other.curves(np.log(middle))[:, 0])
    ranks = np.argsort(np.argsort(fit.predict_draws(C_max * middle)[other.rows, 0]))
    return replace(other, draws=other.draws.of(own[ranks]))
