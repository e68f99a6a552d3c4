"""Model error of forecasts: the other families, weighted by how well they fit the same readings.

Within the readings only eq. 1 is used. Far beyond them nobody knows which family holds; over published learning curves
none was best everywhere. Between one and two times the largest fitted compute the other families are blended in; from
there on a band is that of a mixture, with each family's Akaike weight. The other families only widen the band:
`ablations.answers.forecasts` takes its estimates from eq. 1 while that lies well within the band.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.fit.alternatives import Alternative
from ablations.fit.engine.family import Family
from ablations.fit.engine.posterior import Draws
from ablations.fit.result import Fit

WHOLE_FROM = 2.0
"""Ratio to the largest fitted compute from which the other families have their full weight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Successor:
    """Draws of another family that take over from the fit's draws in `rows` beyond C_max."""

    family: Family
    rows: slice
    draws: Draws

    def curves(self, x: np.ndarray) -> np.ndarray:
        """Pass rate of every draw, r + a g(C; p, q), shape (num_draws, num_compute); x = ln(C / C_max)."""
        r, a, p, q = (values[:, None] for values in (self.draws.r, self.draws.a, self.draws.p, self.draws.q))
        return r + a * self.family.basis(x, p, q)


@dataclass(frozen=True, kw_only=True, eq=False)
class Average:
    """A fit with its model error: each family has draws in proportion to its weight.

    Average(fit=fit, weights={"sigmoid": 0.62, "power law": 0.05, ..., "Weibull": 0.3}, successors=...)

    The draws are in the order of FAMILIES, so draw i of two fits belongs to the same family as far as their weights
    agree, and differences between curves are taken under one law.
    """

    fit: Fit
    weights: dict[str, float]
    """Akaike weights by family name; they sum to 1."""
    successors: tuple[Successor, ...]

    def predict_draws(self, compute: np.ndarray | float, share: np.ndarray | float | None = None) -> np.ndarray:
        """Pass rate of every draw at each compute, in [0, known ceiling], shape (num_draws, num_compute).

        A draw of another family f is (1 - s) R_C + s f(C), where R_C is a draw of eq. 1 and s is `model_error_share`.
        `share` fixes s, as slopes need.
        """
        compute = np.atleast_1d(np.asarray(compute, dtype=float))
        C_max = self.fit.window[1]
        s = np.broadcast_to(model_error_share(compute, C_max) if share is None else share, compute.shape)
        beyond = s > 0
        drawn = self.fit.predict_draws(compute)
        for successor in self.successors:
            curves = successor.curves(np.log(compute[beyond] / C_max))
            drawn[successor.rows, beyond] += s[beyond] * (curves - drawn[successor.rows, beyond])
        return drawn.clip(0, self.fit.settings.highest)


def model_error_share(compute: np.ndarray, C_max: float) -> np.ndarray:
    """s = ln(C / C_max) / ln 2 between C_max and 2 C_max, 0 below and 1 above."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(compute / C_max) / np.log(WHOLE_FROM), 0, 1)


@lru_cache(maxsize=256)
def average(fit: Fit) -> Average:
    """The fit averaged over all families that have weight on its readings.

    Cached for the most recent fits, because a sweep uses each many times.
    """
    successors = tuple(_successor(fit, other) for other in fit.alternatives.others)
    return Average(fit=fit, weights=fit.alternatives.weights, successors=successors)


def _successor(fit: Fit, other: Alternative) -> Successor:
    """The family's draws for its rows, ordered like the fit's draws half way through the blend.

    Pairing by rank instead of at random keeps each pair close together, so the band does not narrow within the blend.
    """
    C_max, middle = fit.window[1], np.array([np.sqrt(WHOLE_FROM)])
    first = Successor(family=other.law, rows=other.rows, draws=other.draws)
    own = np.argsort(first.curves(np.log(middle))[:, 0])
    ranks = np.argsort(np.argsort(fit.predict_draws(C_max * middle)[other.rows, 0]))
    return Successor(family=other.law, rows=other.rows, draws=first.draws.of(own[ranks]))
