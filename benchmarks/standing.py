"""A forecast from where a run stands: eq. 1's rise from there, and departures whose size finished runs tell.

Below, f is the median of eq. 1's draws and C_n the last fitted compute, of n readings beyond step 0.

    now       = f(C_n) + mean of the last k residuals, k = n / 12, at least 3 and at most 8
    rise      = mean over the computes foretold of f(C) - f(C_n), half the run's own and half its variant's mean
    drawdown  = highest running mean of k readings minus the last one, mean over the variant, less noise / sqrt(k)
    centre    = now + 0.7 rise - 2 drawdown
    spread^2  = (0.45 rise)^2 + noise^2 (1 / k + 1 / m + 1.4^2 L) + (sd of eq. 1's own draws of the rise)^2

with m readings foretold and L = ln(C / C_n). Alone, the interval is centre +- 1.96 spread. Beside finished runs, cut at
the same shares of their compute, errors are counted in units of sqrt(L): their mean (over n + 4) shifts the centre, the
variant's own finished seeds shift it further, and quantiles of what is left are the ends, with weight n / (n + 4).
The four numbers (0.7, 2, 0.45, 1.4) and the weights (4, and .4 for the share of a variant in the variance) were chosen
on 2026-11-28 on our runs, public curves and simulated laws. Both halves of our runs were in sight then, so that only
runs that nobody has seen yet can say how good they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ablations.answers.forecasts import joint_draws
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve

RISE, DRAWDOWN, RISE_SD, WANDER = 0.7, 2.0, 0.45, 1.4
PRIOR_RUNS, VARIANT_SHARE = 4.0, 0.4
TAIL = 0.025
LEAST_NOISE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A run at a cut: where it stands, and what eq. 1 foretells from there.

    Standing(run="scalerl-s0", end=0.871, now=0.83, rise=0.04, rise_sd=0.006, drawdown=0.01, noise=0.017, k=6, m=3,
             distance=0.69)
    """

    run: str
    end: float
    """What was measured at the end."""
    now: float
    rise: float
    rise_sd: float
    drawdown: float
    noise: float
    """Standard deviation of a reading about eq. 1, over the last half of the fitted readings."""
    k: int
    m: int
    distance: float
    """L = ln(C / C_n)."""


def standing(curve: Curve, fraction: float, m: int) -> Standing | None:
    """The run at a share of its compute; None if it cannot be fitted. Its last `m` readings are to be foretold."""
    try:
        fit = fit_curve(curve, fit_to=fraction * float(curve.compute[-1]))
    except AblationsError:
        return None
    within = (curve.compute > 0) & (curve.compute <= fraction * curve.compute[-1])
    compute, score, ahead = curve.compute[within], curve.score[within], curve.compute[-m:]
    draws = joint_draws([fit], np.append(compute, ahead), eq1_alone=True)
    law = np.median(draws, axis=0)
    residual = score - law[: score.size]
    k = min(int(np.clip(round(score.size / 12), 3, 8)), score.size)
    rises = draws[:, -m:].mean(axis=1) - draws[:, score.size - 1]
    low, high = np.quantile(rises, (TAIL, 1 - TAIL))
    late = residual[residual.size // 2 :] if residual.size >= 12 else residual
    running = np.convolve(score, np.full(k, 1 / k), "valid")
    return Standing(
        run=curve.name,
        end=float(curve.score[-m:].mean()),
        now=float(law[score.size - 1] + residual[-k:].mean()),
        rise=float(law[-m:].mean() - law[score.size - 1]),
        rise_sd=float((high - low) / 3.92),
        drawdown=float(running.max() - running[-1]),
        noise=max(float(np.std(late, ddof=1)), LEAST_NOISE),
        k=k,
        m=m,
        distance=float(np.log(ahead.mean() / compute[-1])),
    )


def centre_and_spread(run: Standing, variant: Sequence[Standing]) -> tuple[float, float]:
    """Of one run, whose variant's runs at the same cut are `variant`, itself among them."""
    rise = (run.rise + np.mean([one.rise for one in variant])) / 2
    noise = np.mean([one.noise for one in variant])
    drawdown = max(np.mean([one.drawdown - one.noise / np.sqrt(one.k) for one in variant]), 0.0)
    variance = (RISE_SD * rise) ** 2 + noise**2 * (1 / run.k + 1 / run.m + WANDER**2 * run.distance) + run.rise_sd**2
    return float(run.now + RISE * rise - DRAWDOWN * drawdown), float(np.sqrt(variance))


def unlearnt(run: Standing, variant: Sequence[Standing]) -> tuple[float, float, float]:
    """Estimate and 95 % interval without any finished run."""
    centre, spread = centre_and_spread(run, variant)
    return clipped(centre, centre - 1.96 * spread, centre + 1.96 * spread)


def learnt(
    run: Standing, variant: str, cut: float, home: Mapping[float, Sequence[tuple[str, Standing]]]
) -> tuple[float, float, float]:
    """Estimate and 95 % interval beside the finished runs of `home`: by cut, the variant and standing of each run.

    The run itself does not count among them, but its first part does where its variant's runs are looked at together.
    """
    errors = {at: [one for one in errors_of(runs) if one[2] != run.run] for at, runs in home.items()}
    left = np.array(
        [
            error - shift([other for other in at_cut if other[2] != name], of_variant)
            for at_cut in errors.values()
            for of_variant, error, name in at_cut
        ]
    )
    centre, spread = centre_and_spread(run, [one for name, one in home[cut] if name == variant])
    if left.size < 2:
        return clipped(centre, centre - 1.96 * spread, centre + 1.96 * spread)
    num = len(errors[cut])
    weight, unit = num / (num + PRIOR_RUNS), np.sqrt(run.distance)
    shifted = weight * shift(errors[cut], variant) * unit
    low, high = weight * np.quantile(left, (TAIL, 1 - TAIL), method="weibull") * unit
    around = (1 - weight) * 1.96 * spread
    return clipped(centre + shifted, centre + shifted + low - around, centre + shifted + high + around)


def errors_of(runs: Sequence[tuple[str, Standing]]) -> list[tuple[str, float, str]]:
    """Variant, error in units of sqrt(L), and name of each run."""
    found = []
    for variant, one in runs:
        centre, _ = centre_and_spread(one, [other for name, other in runs if name == variant])
        found.append((variant, (one.end - centre) / np.sqrt(one.distance), one.run))
    return found


def shift(errors: Sequence[tuple[str, float, str]], variant: str) -> float:
    """What the errors of finished runs, and those of the variant above all, add to the centre of another run."""
    if not errors:
        return 0.0
    of_all = sum(error for _, error, _ in errors) / (len(errors) + PRIOR_RUNS)
    own = [error for name, error, _ in errors if name == variant]
    share = len(own) * VARIANT_SHARE / (1 - VARIANT_SHARE + len(own) * VARIANT_SHARE)
    return of_all + share * (float(np.mean(own)) - of_all) if own else of_all


def clipped(value: float, lo: float, hi: float) -> tuple[float, float, float]:
    """The estimate inside its interval, and both within [0, 1]."""
    lo, hi = max(lo, 0.0), min(hi, 1.0)
    return float(np.clip(value, lo, hi)), float(lo), float(hi)
