"""How much of a forecast rests on the law: the other families, weighed by how well they fit the same readings.

Within the readings eq. 1 speaks alone. Far beyond them nobody knows which family holds, and over published learning
curves none was best everywhere. So between once and twice the largest compute fitted the other families come in, and
from there on a band is that of a mixture, each family with its Akaike weight. The other families are there to widen the
band: `ablations.answers.forecasts` takes its estimates from eq. 1 as long as it lies well within.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.fit.alternatives import Alternative
from ablations.fit.engine.family import Family
from ablations.fit.engine.posterior import Draws
from ablations.fit.result import Fit

WHOLE_FROM = 2.0
"""Compute, over the largest one fitted, from which on the other families have their whole weight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Successor:
    """Draws of another family, one for each of the fit's draws in `rows`, from which they take over beyond C_max."""

    family: Family
    rows: slice
    draws: Draws

    def curves(self, x: np.ndarray) -> np.ndarray:
        """Pass rate of every draw, r + a g(C; p, q), shape (num_draws, num_compute); x = ln(C / C_max)."""
        r, a, p, q = (values[:, None] for values in (self.draws.r, self.draws.a, self.draws.p, self.draws.q))
        return r + a * self.family.basis(x, p, q)


@dataclass(frozen=True, kw_only=True, eq=False)
class Average:
    """A fit with its model error: draws whose families are in proportion to their weights.

    Average(fit=fit, weights={"sigmoid": 0.62, "power law": 0.05, ..., "Weibull": 0.3}, successors=...)

    The draws are in the order of FAMILIES, so that draw i of two fits is of the same family as far as their weights
    agree: differences between curves are taken under one law.
    """

    fit: Fit
    weights: dict[str, float]
    """Akaike weights by name of the family; they add up to 1."""
    successors: tuple[Successor, ...]

    def predict_draws(self, compute: np.ndarray | float, share: np.ndarray | float | None = None) -> np.ndarray:
        """Pass rate of every draw at each compute, in [0, 1], shape (num_draws, num_compute).

        A draw of another family f is (1 - s) R_C + s f(C), where R_C is a draw of eq. 1 and s is `model_error_share`.
        `share` holds s at a value of its own, as slopes need.
        """
        compute = np.atleast_1d(np.asarray(compute, dtype=float))
        C_max = self.fit.window[1]
        s = np.broadcast_to(model_error_share(compute, C_max) if share is None else share, compute.shape)
        beyond = s > 0
        drawn = self.fit.predict_draws(compute)
        for successor in self.successors:
            curves = successor.curves(np.log(compute[beyond] / C_max))
            drawn[successor.rows, beyond] += s[beyond] * (curves - drawn[successor.rows, beyond])
        return drawn.clip(0, 1)


def model_error_share(compute: np.ndarray, C_max: float) -> np.ndarray:
    """s = ln(C / C_max) / ln 2 between C_max and 2 C_max, 0 below and 1 above."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(compute / C_max) / np.log(WHOLE_FROM), 0, 1)


@lru_cache(maxsize=256)
def average(fit: Fit) -> Average:
    """The fit averaged with all families that have some weight on its readings.

    Kept for the fits used last: a sweep asks for the same ones many times.
    """
    successors = tuple(_successor(fit, other) for other in fit.alternatives.others)
    return Average(fit=fit, weights=fit.alternatives.weights, successors=successors)


def _successor(fit: Fit, other: Alternative) -> Successor:
    """Draws of the family for its rows, in the order of the fit's draws half way into the ramp.

    Joined by rank, and not at random, a pair lies close together, and the band does not narrow between them.
    """
    C_max, middle = fit.window[1], np.array([np.sqrt(WHOLE_FROM)])
    first = Successor(family=other.family, rows=other.rows, draws=other.draws)
    own = np.argsort(first.curves(np.log(middle))[:, 0])
    ranks = np.argsort(np.argsort(fit.predict_draws(C_max * middle)[other.rows, 0]))
    return Successor(family=other.family, rows=other.rows, draws=first.draws.of(own[ranks]))
