"""Forecasts for more compute: pass rates at any compute, compute to a target, and the likely winner.

Every function works on joint draws: draw i of a variant is the mean over its seeds of draw i of each. Readings of
different seeds are never pooled. Within the readings a draw is one of eq. 1; beyond them it is

    R_i(C) = centre(C) + shift sqrt(L) + w q(u_i) sqrt(L) + (1 - w) z_i spread(C)                    z_i = normal(u_i)

from where the run stands (`ablations.answers.standing`) and from what finished runs teach
(`ablations.answers.calibration`); where none teach, the spread is a quarter wider. Up to 1.25 times the last reading
one passes into the other. Runs of a variant share a part of z. An estimate is the median of the draws, so it lies in
its interval. Intervals for two seeds or more, and differences, include the run-to-run spread of levels. Up to the
compute that all have reached a difference is that of the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from zlib import crc32

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from ablations.answers.calibration import FURTHEST, UNCALIBRATED, VARIANT_SHARE, Calibration
from ablations.answers.differences import starts_of
from ablations.answers.footing import NEARLY
from ablations.answers.interval import Interval
from ablations.answers.level import compared_at, levels_of
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import RunToRun
from ablations.answers.standing import RISE, ahead_of, distance_from, median_law, standing_of
from ablations.fit.law_fit import LawFit
from ablations.fit.result import Fit
from ablations.text import or_dots

FURTHEST_SEARCH = 100.0
"""Limit of every search, as a multiple of the largest fitted compute."""
NUM_GRID = 200
NUM_KNOTS = 48
"""Number of computes from which those between are interpolated in ln C."""
INNER = (0.1, 0.9)
OUTER = (0.025, 0.975)
ONE_POINT = 0.01
SLOPE_STEP = 0.01
"""Step in ln C for slopes."""
LONE = 1.25
"""Factor of the spread where no finished runs teach. By their interval score the runs that a forecast may be tuned on
ask for 1.25 to 1.5 (`benchmarks/forecast_shelf.py`, a run alone from .3 to .7)."""
WHOLE_FROM = 1.25
"""Ratio to the last fitted compute from which a draw is the forecast's alone."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The pass rate of a variant at one compute.

    Prediction(compute=32000.0, estimate=0.606, lo=0.589, hi=0.622, lo_80=0.596, hi_80=0.616, extrapolation=4.0)
    """

    compute: float
    estimate: float
    lo: float
    """Lower end of the 95 % interval."""
    hi: float
    lo_80: float
    hi_80: float
    extrapolation: float
    """Compute divided by the largest fitted compute (the smallest of the seeds')."""


@dataclass(frozen=True, kw_only=True)
class Chance:
    """The probability that a variant is the best at one compute: `Chance(variant="loo-loss", wins=0.62, rule=...)`."""

    variant: str
    wins: float
    rule: str
    """The run-to-run spread in words, and its source."""


@dataclass(frozen=True, kw_only=True, eq=False)
class VariantFits:
    """A variant to forecast: `VariantFits(variant="loo-loss", fits=(fit, fit, fit), calibration=Calibration(...))`."""

    variant: str
    fits: tuple[Fit, ...]
    """One per seed, none of them collapsed."""
    calibration: Calibration = UNCALIBRATED

    @property
    def highest(self) -> float:
        """The highest pass rate that is possible."""
        return max(fit.settings.highest for fit in self.fits)

    @property
    def last(self) -> float:
        """The largest fitted compute."""
        return max(fit.window[1] for fit in self.fits)

    def draws(self, compute: np.ndarray | float) -> np.ndarray:
        """Draws of the pass rate of these very runs at each compute, shape (num_draws, num_compute)."""
        compute = np.atleast_1d(np.asarray(compute, dtype=float))
        return _draws_about(self, float(compute[0]))[:, 1:2] if compute.size == 1 else self._draws(compute)

    def _draws(self, compute: np.ndarray) -> np.ndarray:
        drawn = mean_draws(self.fits, self.fits, compute, self.variant, self.calibration)
        return drawn.clip(0, self.highest, out=drawn)

    @cached_property
    def _own_scatter(self) -> Repeats:
        """The runs where all of them have been, without errors of readings, which are in the draws."""
        at = np.array([min(fit.window[1] for fit in self.fits)])
        values = [float(median_law(fit, at)[0]) for fit in self.fits]
        return Repeats.of(values, [0.0] * len(values), starts_of(self.fits))

    def recipe_draws(self, compute: np.ndarray | float, spread: RunToRun) -> np.ndarray:
        """Draws of the pass rate of the recipe, shape (num_draws, num_compute), with the run-to-run spread of `spread`;
        with one seed, of the run."""
        drawn = self.draws(compute)
        if len(self.fits) == 1 or not spread.is_known:
            return drawn
        mean = spread.of_mean(self._own_scatter)
        offsets = np.sqrt(mean.variance) * stdtrit(mean.freedom, shuffled_shares(len(drawn), seed=2))
        return (drawn + offsets[:, None]).clip(0, self.highest)


@lru_cache(maxsize=256)  # a prediction, a difference, a cost and a leaderboard ask for the same
def _draws_about(variant: VariantFits, compute: float) -> np.ndarray:
    """Draws just below a compute, at it, and just above."""
    return variant._draws(compute * np.exp(SLOPE_STEP * np.array([-0.5, 0.0, 0.5])))


def mean_draws(
    fits: Sequence[LawFit],
    siblings: Sequence[LawFit],
    compute: np.ndarray,
    variant: str,
    calibration: Calibration,
    *,
    num_readings: int = 0,
) -> np.ndarray:
    """Draws of the mean of some runs at each compute, shape (num_draws, num_compute); `siblings` are all runs of their
    variant. With `num_readings` they are draws of the mean of so many readings.
    """
    total = np.zeros((fits[0].draws.A.size, compute.size))
    level, slopes, scores = np.zeros(compute.size), [], []
    for fit in fits:
        with np.errstate(divide="ignore"):
            share = (np.log(compute / fit.window[1]) / np.log(WHOLE_FROM)).clip(0, 1)
        if (share < 1).any():
            within = slice(np.flatnonzero(share < 1)[-1] + 1)
            drawn = fit.predict_draws(compute[within])
            drawn *= 1 - share[within]
            total[:, within] += drawn
        if (share > 0).any():
            beyond = slice(np.argmax(share > 0), None)
            centre, *widths = _ahead(fit, siblings, compute[beyond], variant, calibration, num_readings)
            level[beyond] += share[beyond] * centre
            for width in widths:
                slopes.append(np.zeros(compute.size))
                slopes[-1][beyond] = share[beyond] * width
            scores += [_scores(fit, variant), _quantiles(calibration, fit, variant)]
    if scores:
        total += np.stack(scores, axis=1) @ np.stack(slopes)
        total += level
    total /= len(fits)
    return total


def _ahead(
    fit: LawFit,
    siblings: Sequence[LawFit],
    compute: np.ndarray,
    variant: str,
    calibration: Calibration,
    num_readings: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a run at each compute beyond its last reading: the centre with its shift, and the factors of z and of q."""
    if compute.size > NUM_KNOTS:
        knots = np.geomspace(compute.min(), compute.max(), NUM_KNOTS)
        of_knots = _ahead(fit, siblings, knots, variant, calibration, num_readings)
        centre, of_z, of_q = (np.interp(np.log(compute), np.log(knots), values) for values in of_knots)
        return centre, of_z, of_q
    centre, spread, rise = ahead_of(fit, siblings, compute, num_readings=num_readings)
    unclaimed = (1 - RISE) * rise.clip(0)
    if calibration.is_carried:
        centre, unclaimed = np.full_like(centre, standing_of(fit).carried), rise.clip(0)
    distance, w = distance_from(fit, compute), calibration.weight
    if w:
        shift = calibration.shifts(variant, distance) * np.sqrt(distance.clip(max=FURTHEST))
        # Early parts of finished runs rise more than is left to rise: no shift passes the whole rise of eq. 1.
        centre = centre + np.minimum(shift, unclaimed)
    return centre, (1 - w if w else LONE) * spread, w * np.sqrt(distance)


@lru_cache(maxsize=1024)
def _scores(fit: LawFit, variant: str) -> np.ndarray:
    """z of each draw of a run: in the order of eq. 1's draws at the last reading, so that curves have no jumps, and in
    part that of its variant."""
    own = _normal_scores(fit.predict_draws(fit.window[1])[:, 0])
    of_variant = ndtri(shuffled_shares(own.size, seed=crc32(variant.encode())))
    return _normal_scores(np.sqrt(VARIANT_SHARE) * of_variant + np.sqrt(1 - VARIANT_SHARE) * own)


@lru_cache(maxsize=1024)
def _quantiles(calibration: Calibration, fit: LawFit, variant: str) -> np.ndarray:
    """q of each draw of a run; 0 where finished runs have no weight."""
    return calibration.quantiles(ndtr(_scores(fit, variant))) if calibration.weight else np.zeros(fit.draws.A.size)


def _normal_scores(values: np.ndarray) -> np.ndarray:
    """The normal quantile of each value's rank."""
    return ndtri((np.argsort(np.argsort(values)) + 0.5) / values.size)


@lru_cache(maxsize=256)
def shuffled_shares(num: int, *, seed: int) -> np.ndarray:
    """(i + 1/2) / num in an order that the seed fixes."""
    shares = np.random.default_rng([3, seed]).permutation((np.arange(num) + 0.5) / num)
    shares.flags.writeable = False
    return shares


def estimated(prospect: VariantFits, compute: np.ndarray | float) -> np.ndarray:
    """The estimated curve at each compute, shape (num_compute,)."""
    return np.median(prospect.draws(compute), axis=0)


def predict(prospect: VariantFits, compute: float, spread: RunToRun) -> Prediction:
    """The pass rate at any compute with its 80 % and 95 % intervals; `spread` is the run-to-run spread of levels.

    One seed gives the forecast of that run; two or more give the forecast of the recipe, like A in a comparison.
    """
    drawn = prospect.recipe_draws(compute, spread)[:, 0]
    estimate, lo, hi, lo_80, hi_80 = (float(end) for end in np.quantile(drawn, (0.5, *OUTER, *INNER)))
    return Prediction(
        compute=compute,
        estimate=estimate,
        lo=lo,
        hi=hi,
        lo_80=lo_80,
        hi_80=hi_80,
        extrapolation=compute / min(fit.window[1] for fit in prospect.fits),
    )


def difference_at(prospect: VariantFits, baseline: VariantFits, compute: float, spread: RunToRun) -> Interval:
    """Pass rate of `prospect` minus that of `baseline` at one compute; `spread` is the run-to-run spread of levels
    there (`ablations.answers.pass_rate_at`).

    Up to the compute that all runs have reached, this is the difference in level, with the verdict's own numbers at the
    same compute. Beyond it, this is the difference of the draws.
    """
    reached = compared_at([*prospect.fits, *baseline.fits])
    if spread.is_known and compute <= NEARLY * reached:
        sides = [levels_of(one.fits, min(compute, reached)) for one in (prospect, baseline)]
        if sides[0] is not None and sides[1] is not None:
            found = spread.of_difference(sides[0], sides[1])
            lo, hi = (found.estimate + np.sqrt(found.variance) * stdtrit(found.freedom, share) for share in OUTER)
            return Interval(estimate=found.estimate, lo=float(lo), hi=float(hi))
    apart = spread.differences(starts_of(prospect.fits), starts_of(baseline.fits), prospect.fits[0].draws.A.size)
    return drawn_interval(prospect.draws(compute)[:, 0] - baseline.draws(compute)[:, 0] + apart)


def compute_to_reach(prospect: VariantFits, score: float, spread: RunToRun) -> Interval | None:
    """Compute at which the variant reaches a pass rate; None if at least half of the curves never do.

    "Never" means not up to 100 times the largest fitted compute. An end of the interval is None in the same sense, and
    0 if R_0 is `score` or more.
    """
    grid = search_grid(prospect.fits, start=0.01)
    along = prospect.recipe_draws(np.append(0.0, grid), spread)
    scores = np.maximum.accumulate(along, axis=1)
    reached = np.where(scores[:, 0] >= score, 0.0, _first_crossings(scores[:, 1:] - score, grid))
    return _finite_interval(reached)


def cost_of_a_point(prospect: VariantFits, compute: float) -> Interval | None:
    """Compute for another 0.01 of pass rate at one compute, 0.01 / (dR/dC); None if half of the curves do not rise.

    A curve does not rise if the point would cost over 100 times the largest fitted compute; an end of the interval is
    None in the same sense.
    """
    below, _, above = _draws_about(prospect, compute).T
    slope = (above - below) / (compute * 2 * np.sinh(SLOPE_STEP / 2))
    with np.errstate(divide="ignore", over="ignore"):
        cost = np.where(slope > 0, ONE_POINT / slope, np.inf)
    return _finite_interval(np.where(cost <= FURTHEST_SEARCH * prospect.last, cost, np.inf))


def leaderboard(prospects: Sequence[VariantFits], compute: float, spread: RunToRun) -> tuple[Chance, ...]:
    """P(variant wins) at one compute, the likeliest winner first: the share of joint draws in which the variant is
    highest.

    Run-to-run differences are included. The Monte Carlo sd is at most 0.5 / sqrt(num_draws): 0.011 with 2000 draws.
    """
    curves = np.stack([one.draws(compute)[:, 0] for one in prospects])
    offsets = spread.run_offsets([starts_of(one.fits) for one in prospects], curves.shape[1])
    highest = max(one.highest for one in prospects)
    drawn = (curves + [np.mean(of_variant, axis=0) for of_variant in offsets]).clip(0, highest)
    # Draws that end at the ceiling together share the win.
    ahead = drawn == np.max(drawn, axis=0)
    wins = np.mean(ahead / ahead.sum(axis=0), axis=1)
    rule = f"a run-to-run sd of {spread}"
    chances = [
        Chance(variant=one.variant, wins=float(share), rule=rule) for one, share in zip(prospects, wins, strict=True)
    ]
    return tuple(sorted(chances, key=lambda chance: -chance.wins))


def search_grid(fits: Sequence[Fit], *, start: float) -> np.ndarray:
    """Compute from `start` times the first fitted reading to 100 times the last, evenly spaced in ln C."""
    first, last = min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)
    return np.geomspace(start * first, FURTHEST_SEARCH * last, NUM_GRID)


def _first_crossings(above: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Compute at which each row first is 0 or more, linear in ln C between nodes; infinite if it never is."""
    reached = above >= 0
    node = np.argmax(reached, axis=1)
    at = root(above, grid, np.maximum(node, 1))
    at[reached[:, 0]] = grid[0]
    at[~reached.any(axis=1)] = np.inf
    return at


def root(values: np.ndarray, grid: np.ndarray, node: np.ndarray) -> np.ndarray:
    """The root of each row between the nodes `node` - 1 and `node`, linear in ln C."""
    rows = np.arange(node.size)
    before, after = values[rows, node - 1], values[rows, node]
    share = np.divide(before, before - after, out=np.zeros_like(before), where=before != after).clip(0, 1)
    return np.exp((1 - share) * np.log(grid[node - 1]) + share * np.log(grid[node]))


def drawn_interval(drawn: np.ndarray) -> Interval:
    """The median of draws with their 95 % interval."""
    lo, estimate, hi = np.quantile(drawn, (OUTER[0], 0.5, OUTER[1]), method="closest_observation")
    return Interval(estimate=float(estimate), lo=float(lo), hi=float(hi))


def _finite_interval(drawn: np.ndarray) -> Interval | None:
    """The interval of draws that may be infinite: an infinite end becomes None, and an infinite estimate gives no
    interval.
    """
    found = drawn_interval(drawn)
    if not np.isfinite(found.estimate):
        return None
    return found if np.isfinite(found.hi or 0.0) else replace(found, hi=None)


def no_forecast(fit: Fit) -> str:
    """The reason why a fit gives no forecast; empty if it gives one."""
    if fit.verdict != "collapsed":
        return ""
    return f"the pass rate fell for good after compute {or_dots(fit.window[1])}; the part before gives no forecast"
