"""How often forecasts of the end of a run hold, over simulated homes whose law is known, eq. 1 and others.

    PYTHONPATH=platform:trainer:benchmarks OMP_NUM_THREADS=1 python benchmarks/forecast.py   # six minutes on one core

A home has four variants with three seeds, 45 readings each, by one of the laws of `law_doubt.py`, with parameters of
its own for each variant and seeds .0075 apart in A; noise as there. Every run is forecast from .3, .5 and .7 of its
compute, alone and beside the other eleven as if these had finished, as `platform forecast --backtest` does. Reported
are the coverage of the 95 % intervals of the last three readings' mean, median widths, mean absolute errors and mean
interval scores, those of carrying the last readings on among them. Writes `results/forecast.json`.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from law_doubt import COMPUTE, RUN_TO_RUN_SD, drawn_law, rounded
from record import write_record
from simulation import NUM_SAMPLES, RUN_NOISE_SD, SEED

from ablations.findings.backtest import Check, backtest, score
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings

LISTED = ("eq. 1", "power law", "stretched", "Weibull", "second phase")
UNLISTED = ("Gompertz", "capped", "late start", "plateau", "two speeds", "drift", "decline")
RHOS = (0.0, 0.55)
HOMES, VARIANTS, SEEDS = 5, 4, 3
FRACTIONS = (0.3, 0.5, 0.7)


def main() -> None:
    cells = [cell(law, rho) for law in (*LISTED, *UNLISTED) for rho in RHOS]
    settings = {"homes": HOMES, "variants": VARIANTS, "seeds": SEEDS, "run_to_run_sd": RUN_TO_RUN_SD, "seed": SEED}
    write_record("forecast", {"settings": settings, "cells": cells})


def cell(law: str, rho: float) -> dict[str, Any]:
    """One law and noise: the scores alone and beside finished runs, by the share of the compute that was used."""
    rng = np.random.default_rng([SEED, (*LISTED, *UNLISTED).index(law), RHOS.index(rho)])
    alone, beside = [], []
    for number in range(HOMES):
        curves = home(law, rho, rng, number)
        beside += backtest(curves, FitSettings()).checks
        for variant, runs in curves.items():
            for run in runs:
                alone += backtest({variant: [run]}, FitSettings()).checks
    found = {"law": law, "rho": rho, "alone": by_fraction(alone), "beside": by_fraction(beside)}
    print(json.dumps(found), flush=True)
    return found


def home(law: str, rho: float, rng: np.random.Generator, number: int) -> dict[str, list[Curve]]:
    """The curves of a home, by variant."""
    curves = {}
    for variant in range(VARIANTS):
        of_law, A = drawn_law(law, rng)
        curves[f"{variant}"] = [
            reading(of_law(COMPUTE, A + RUN_TO_RUN_SD * rng.standard_normal()), rho, rng, f"{number}-{variant}-s{seed}")
            for seed in range(SEEDS)
        ]
    return curves


def reading(rate: np.ndarray, rho: float, rng: np.random.Generator, name: str) -> Curve:
    """A run's readings: run noise AR(1), then a binomial sample."""
    noise = RUN_NOISE_SD * rng.standard_normal(rate.size)
    for index in range(1, rate.size):
        noise[index] = rho * noise[index - 1] + np.sqrt(1 - rho**2) * noise[index]
    score = rng.binomial(NUM_SAMPLES, np.clip(rate + noise, 0, 1)) / NUM_SAMPLES
    return Curve(name=name, compute=COMPUTE, score=score, samples=np.full(COMPUTE.size, NUM_SAMPLES))


def by_fraction(checks: Sequence[Check]) -> dict[str, dict[str, float]]:
    found = {}
    for fraction in FRACTIONS:
        made = [one for one in checks if one.fraction == fraction and one.predicted is not None]
        scored = score(fraction, made)
        found[f"{fraction:g}"] = {
            "runs": scored.num_runs,
            "coverage": rounded(scored.coverage),
            "median_width": rounded(np.median([one.hi - one.lo for one in made if one.hi and one.lo is not None])),
            "mean_absolute_error": rounded(scored.mean_absolute_error),
            "interval_score": rounded(scored.interval_score),
            "carried_mean_absolute_error": rounded(scored.carried_mean_absolute_error),
            "carried_interval_score": rounded(scored.carried_interval_score),
        }
    return found


if __name__ == "__main__":
    main()
