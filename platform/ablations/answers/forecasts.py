"""Forecasts for more compute: pass rates at any compute, compute to a target, and the likely winner.

Every function takes the fits of one variant, one per seed, and works on joint draws: draw i of a variant is the mean
over its seeds of draw i of each. Readings of different seeds are never pooled. Intervals and probabilities include
model error beyond the fitted range (`ablations.fit.averaging`). An estimate is the median of eq. 1's draws if the 80 %
interval contains it, else the median of all draws, so an estimate never contradicts its interval; with a fifth of the
weight or more, eq. 1 always lies within. Predictions from two seeds on, and
differences, come from the scatter of the seeds' own numbers, as verdicts do (`ablations.answers.run_to_run`): up to the
compute that all have reached a difference is the level's. Chances to win and crossings add draws of the spread of
levels to those of the fits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.interval import Interval
from ablations.answers.one_law import law_weights
from ablations.answers.pass_rate_at import pass_rate_at, predictions
from ablations.answers.run_to_run import RunToRun
from ablations.answers.student import interval_of, quantile
from ablations.fit.averaging import averaged_draws, model_error_share
from ablations.fit.result import Fit
from ablations.text import or_dots

FURTHEST = 100.0
"""Limit of every search, as a multiple of the largest fitted compute."""
NUM_GRID = 400
NUM_BEYOND = 40
INNER = (0.1, 0.9)
OUTER = (0.025, 0.975)
ONE_POINT = 0.01
SLOPE_STEP = 0.01
"""Step in ln C for slopes; the slope over it differs from the derivative by a share of about (B * 0.01)^2."""


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


def joint_draws(
    fits: Sequence[Fit], compute: np.ndarray | float, *, spread: RunToRun | None = None, eq1_alone: bool = False
) -> np.ndarray:
    """Draws of the pass rate of a variant at each compute, shape (num_draws, num_compute).

    The draws describe the given runs; with two seeds or more and a `spread`, they describe the recipe.
    """
    compute = np.atleast_1d(np.asarray(compute, dtype=float))
    share = 0.0 if eq1_alone else None
    drawn = np.mean([averaged_draws(fit, compute, share) for fit in fits], axis=0)
    if spread is not None and len(fits) > 1:
        drawn = drawn + spread.mean_offsets(starts_of(fits), len(drawn))[:, None]
    return drawn.clip(0, max(fit.settings.highest for fit in fits))


def is_by_eq1(fits: Sequence[Fit]) -> bool:
    """True if eq. 1 gives the estimated curve: its median lies in the 80 % band up to 100 times the largest fitted
    compute. One law serves the whole curve, so the curve has no jumps.

    The weight of eq. 1 would be a bad criterion: with nine readings AICc favours families with fewer parameters
    regardless of the readings. Forecasts of nine laptop runs from their first 30 % err by .107 with a minimum weight of
    1/4, and by .057 with this rule.
    """
    return _lies_within(tuple(fits))


@lru_cache(maxsize=64)
def _lies_within(fits: tuple[Fit, ...]) -> bool:
    beyond = np.geomspace(1, FURTHEST, NUM_BEYOND) * max(fit.window[1] for fit in fits)
    medians = np.median(joint_draws(fits, beyond, eq1_alone=True), axis=0)
    lo, hi = np.quantile(joint_draws(fits, beyond), INNER, axis=0)
    return bool(np.all((lo <= medians) & (medians <= hi)))


def estimated(fits: Sequence[Fit], compute: np.ndarray | float) -> np.ndarray:
    """The estimated curve at each compute, shape (num_compute,)."""
    return np.median(joint_draws(fits, compute, eq1_alone=is_by_eq1(fits)), axis=0)


def predict(fits: Sequence[Fit], compute: float, spread: RunToRun) -> Prediction:
    """The pass rate at any compute with its 80 % and 95 % intervals; `spread` is that of `pass_rate_at(compute)`.

    One seed gives the forecast of that run; two or more give the forecast of the recipe, like A in a comparison.
    """
    if len(fits) > 1 and spread.is_known:
        parts = [
            replace(spread.under.get(law, spread).of_mean(predictions(fits, compute, law)), weight=weight)
            for law, weight in law_weights(fits).items()
        ]
        ends = [quantile(parts, share) for share in (*OUTER, *INNER)]
    else:
        ends = np.quantile(joint_draws(fits, compute), (*OUTER, *INNER)).tolist()
    highest = max(fit.settings.highest for fit in fits)
    lo, hi, lo_80, hi_80 = (min(max(float(end), 0.0), highest) for end in ends)
    return Prediction(
        compute=compute,
        estimate=float(estimated(fits, compute)[0]),
        lo=lo,
        hi=hi,
        lo_80=lo_80,
        hi_80=hi_80,
        extrapolation=compute / min(fit.window[1] for fit in fits),
    )


def difference_at(fits: Sequence[Fit], baseline: Sequence[Fit], compute: float, spread: RunToRun) -> Interval:
    """Pass rate of `fits` minus that of `baseline` at one compute; `spread` is that of `pass_rate_at(compute)`.

    Up to the compute that all runs have reached, this is the difference in level, with the verdict's own numbers at the
    same compute. Beyond it, this is the difference of the fitted curves under each law in turn. An unknown spread is
    replaced by the assumed one.
    """
    question = pass_rate_at(compute)
    if not spread.is_known:
        offsets = spread.differences(starts_of(fits), starts_of(baseline), fits[0].draws.A.size)
        central, drawn = (
            joint_draws(fits, compute, eq1_alone=eq1_alone)[:, 0]
            - joint_draws(baseline, compute, eq1_alone=eq1_alone)[:, 0]
            + offsets
            for eq1_alone in (is_by_eq1(fits) and is_by_eq1(baseline), False)
        )
        return drawn_interval(central, drawn)
    parts = [
        replace(spread.under.get(law, spread).of_difference(runs, others), weight=weight)
        for law, weight in law_weights([*fits, *baseline]).items()
        if (runs := question.repeats(fits, baseline, law)) and (others := question.repeats(baseline, fits, law))
    ]
    lo_80, hi_80 = (quantile(parts, share) for share in INNER)
    by_eq1 = parts[0].estimate  # eq. 1 is the first law
    is_eq1s = is_by_eq1(fits) and is_by_eq1(baseline) and lo_80 <= by_eq1 <= hi_80
    found = interval_of(parts, by_eq1 if is_eq1s else quantile(parts, 0.5))
    return Interval(estimate=found.estimate, lo=found.lo, hi=found.hi)


def compute_to_reach(fits: Sequence[Fit], score: float, spread: RunToRun) -> Interval | None:
    """Compute at which the variant reaches a pass rate; None if at least half of the curves never do.

    "Never" means not up to 100 times the largest fitted compute. An end of the interval is None in the same sense, and
    0 if R_0 is `score` or more.
    """
    grid = search_grid(fits, start=0.01)

    def drawn(*, eq1_alone: bool) -> np.ndarray:
        along = joint_draws(fits, np.append(0.0, grid), spread=spread, eq1_alone=eq1_alone)
        scores = np.maximum.accumulate(along, axis=1)
        return np.where(scores[:, 0] >= score, 0.0, _first_crossings(scores[:, 1:] - score, grid))

    return _finite_interval(drawn(eq1_alone=is_by_eq1(fits)), drawn(eq1_alone=False))


def cost_of_a_point(fits: Sequence[Fit], compute: float) -> Interval | None:
    """Compute for another 0.01 of pass rate at one compute, 0.01 / (dR/dC); None if half of the curves do not rise.

    A curve does not rise if the point would cost over 100 times the largest fitted compute; an end of the interval is
    None in the same sense. The slope is taken with the shares of the families held fixed.
    """
    ends = compute * np.exp(SLOPE_STEP * np.array([-0.5, 0.5]))

    def drawn(*, eq1_alone: bool) -> np.ndarray:
        slopes = []
        for fit in fits:
            share = 0.0 if eq1_alone else model_error_share(np.array([compute]), fit.window[1])
            below, above = averaged_draws(fit, ends, share).T
            slopes.append((above - below) / (ends[1] - ends[0]))
        slope = np.mean(slopes, axis=0)
        with np.errstate(divide="ignore", over="ignore"):
            cost = np.where(slope > 0, ONE_POINT / slope, np.inf)
        return np.where(cost <= FURTHEST * max(fit.window[1] for fit in fits), cost, np.inf)

    return _finite_interval(drawn(eq1_alone=is_by_eq1(fits)), drawn(eq1_alone=False))


def leaderboard(groups: Mapping[str, Sequence[Fit]], compute: float, spread: RunToRun) -> tuple[Chance, ...]:
    """P(variant wins) at one compute, the likeliest winner first: the share of joint draws in which the variant is
    highest.

    Run-to-run differences are included. The Monte Carlo sd is at most 0.5 / sqrt(num_draws): 0.011 with 2000 draws.
    """
    curves = np.stack([joint_draws(fits, compute)[:, 0] for fits in groups.values()])
    offsets = spread.run_offsets([starts_of(fits) for fits in groups.values()], curves.shape[1])
    highest = max(fit.settings.highest for fits in groups.values() for fit in fits)
    drawn = (curves + [np.mean(of_variant, axis=0) for of_variant in offsets]).clip(0, highest)
    # Draws that end at the ceiling together share the win.
    ahead = drawn == np.max(drawn, axis=0)
    wins = np.mean(ahead / ahead.sum(axis=0), axis=1)
    rule = f"a run-to-run sd of {spread}"
    chances = [Chance(variant=name, wins=float(share), rule=rule) for name, share in zip(groups, wins, strict=True)]
    return tuple(sorted(chances, key=lambda chance: -chance.wins))


def search_grid(fits: Sequence[Fit], *, start: float) -> np.ndarray:
    """Compute from `start` times the first fitted reading to 100 times the last, evenly spaced in ln C."""
    first, last = min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)
    return np.geomspace(start * first, FURTHEST * last, NUM_GRID)


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


def drawn_interval(central: np.ndarray, drawn: np.ndarray) -> Interval:
    """The 95 % interval of all draws, with the median of the central ones, or of all if that median lies outside the 80
    % interval.
    """
    (lo, hi), (lo_80, hi_80) = (np.quantile(drawn, levels, method="closest_observation") for levels in (OUTER, INNER))
    estimate, averaged = (np.quantile(values, 0.5, method="closest_observation") for values in (central, drawn))
    if not lo_80 <= estimate <= hi_80:
        estimate = averaged
    return Interval(estimate=float(estimate), lo=float(lo), hi=float(hi))


def _finite_interval(central: np.ndarray, drawn: np.ndarray) -> Interval | None:
    """The interval of draws that may be infinite: an infinite end becomes None, and an infinite estimate gives no
    interval.
    """
    found = drawn_interval(central, drawn)
    if not np.isfinite(found.estimate):
        return None
    return found if np.isfinite(found.hi or 0.0) else replace(found, hi=None)


def no_forecast(fit: Fit) -> str:
    """The reason why a fit gives no forecast; empty if it gives one."""
    end = or_dots(fit.window[1])
    if fit.verdict == "collapsed":
        return f"the pass rate fell for good after compute {end}; the part before gives no forecast"
    if fit.verdict == "fell":
        return f"the pass rate fell up to compute {end}, so the variant has no forecast"
    if not fit.rises:
        return f"{fit.verdict} up to compute {end}: a flat line fits as well, so the variant has no forecast"
    return ""
