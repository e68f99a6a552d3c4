"""How much of a forecast rests on the law: the other families, weighed by how well they fit the same readings.

Within the readings eq. 1 speaks alone. Far beyond them nobody knows which family holds, and over published learning
curves none was best everywhere. So between once and twice the largest compute fitted the other families come in, and
from there on a band is that of a mixture, each family with its Akaike weight. The other families are there to widen the
band: `ablations.forecast.forecasts` takes its estimates from eq. 1 as long as it lies well within.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.fit.engine.anchor import anchor_deviance
from ablations.fit.engine.family import FAMILIES, SIGMOID, Family
from ablations.fit.engine.noise import LEAST_SD, one_blas_thread
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import solve
from ablations.fit.fitting import noises_to_weigh
from ablations.fit.result import Fit

WHOLE_FROM = 2.0
"""Compute, over the largest one fitted, from which on the other families have their whole weight."""
PRIOR_OF_EQ_1 = 0.5
"""The law that published runs followed up to 100k GPU-hours (ScaleRL figure 1); the other families share the rest.
With equal priors the mixture's median errs twice as much as eq. 1 where that is true, and as much where it is not."""
LEAST_FOR_AICC = max(family.num_parameters for family in FAMILIES) + 3
"""AICc of every family exists from here on."""


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


def aicc(mean_square: float, *, num_readings: int, autocorrelation: float, num_parameters: int) -> float:
    """n_eff ln(SSE / n) + 2 k + 2 k (k + 1) / (n - k - 1) (Hurvich and Tsai 1989), k with the noise variance in it.

    n_eff = n (1 - rho) / (1 + rho) independent readings say as much of a mean as n of lag-1 autocorrelation rho. The
    correction keeps n: 31 readings with rho = .6 count as 8, and at 8 it is 30 for k = 5 and 13 for k = 4, which would
    decide whatever the readings say. n is no less than LEAST_FOR_AICC, so that it exists.
    """
    n, k = max(num_readings, LEAST_FOR_AICC), num_parameters
    n_eff = num_readings * (1 - autocorrelation) / (1 + autocorrelation)
    return n_eff * float(np.log(mean_square)) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def akaike_weights(criteria: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """w = prior exp(-(AICc - least AICc) / 2), scaled to add up to 1 (Burnham and Anderson 2002, §2.9, §6.4.5)."""
    weights = priors * np.exp(-0.5 * (criteria - criteria.min()))
    return weights / weights.sum()


@lru_cache(maxsize=256)
@one_blas_thread
def average(fit: Fit) -> Average:
    """The fit averaged with all families, each fitted to the fit's own readings with its own posterior.

    Kept for the fits used last: a sweep asks for the same ones many times.
    """
    weights = family_weights(fit)
    num_draws = fit.draws.A.size
    ends = np.rint(num_draws * np.cumsum(list(weights.values()))).astype(int)
    successors = [
        _successor(fit, family, slice(int(start), int(end)))
        for family, start, end in zip(FAMILIES[1:], ends[:-1], ends[1:], strict=True)
        if end > start
    ]
    return Average(fit=fit, weights=weights, successors=tuple(successors))


def family_weights(fit: Fit) -> dict[str, float]:
    """Akaike weight of every family on the fit's readings, by name, in the order of FAMILIES.

    SSE is the best curve's least noise_sd^2 times deviance: the squared residuals plus what the reading at step 0
    speaks against its R_0, as far as it may lie on the law at all (`anchor_deviance`).
    """
    readings = fit.readings
    num = readings.score.size + int(readings.anchors[0].is_informative)
    criteria = [
        aicc(
            _sum_of_squares(fit, family) / num,
            num_readings=num,
            autocorrelation=fit.autocorrelation,
            num_parameters=family.num_parameters + 1,
        )
        for family in FAMILIES
    ]
    priors = np.full(len(FAMILIES), (1 - PRIOR_OF_EQ_1) / (len(FAMILIES) - 1))
    priors[FAMILIES.index(SIGMOID)] = PRIOR_OF_EQ_1
    names = (family.name for family in FAMILIES)
    return dict(zip(names, akaike_weights(np.array(criteria), priors).tolist(), strict=True))


def _sum_of_squares(fit: Fit, family: Family) -> float:
    readings, variance = fit.readings, fit.noise_sd**2
    run_variance = variance - readings.sampling_variance
    found = []
    for anchor in readings.anchors:
        best = solve(family, readings.x, readings.score, variance=variance, prior=anchor.prior(run_variance))
        off_start = anchor_deviance(readings.anchors, best.r, run_variance)
        off_start -= anchor_deviance(readings.anchors, readings.anchors[0].value, run_variance)
        found.append(float(best.residuals @ best.residuals) + variance * off_start)
    return max(min(found), readings.score.size * LEAST_SD**2)


def _successor(fit: Fit, family: Family, rows: slice) -> Successor:
    """Draws of the family for these rows, in the order of the fit's draws half way into the ramp.

    Joined by rank, and not at random, a pair lies close together, and the band does not narrow between them.
    """
    readings = fit.readings
    noise, variance = noises_to_weigh(readings.score - fit.predict(readings.compute), readings)
    drawn = sample(family, readings.x, readings.score, noise=noise, anchors=readings.anchors, variance=variance)
    C_max, num = fit.window[1], rows.stop - rows.start
    middle = np.array([np.sqrt(WHOLE_FROM)])
    first = Successor(family=family, rows=rows, draws=drawn.of(np.arange(num)))
    own = np.argsort(first.curves(np.log(middle))[:, 0])
    ranks = np.argsort(np.argsort(fit.predict_draws(C_max * middle)[rows, 0]))
    return Successor(family=family, rows=rows, draws=first.draws.of(own[ranks]))
