"""How far past C_mid the readings must go before A is known to +-0.02, by B: what `fit --explain` says of it.

    PYTHONPATH=platform:trainer python benchmarks/least_reach.py        # ten minutes on one core

Simulated runs of eq. 1: R_0 .3, A .6, step 0 and 36 readings evenly spaced to `reach` times C_mid, all of them fitted;
noise binomial over 16,000 samples plus a run noise of sd 0.0045, AR(1) with rho 0.4, the middle of what residuals of
published runs show. A cell is the share of curves that are resolved under eq. 1: its 95 % interval of A is at most .04
wide. The reach needed is where that share crosses .8, interpolated in ln reach. Writes `results/least_reach.json`.
"""

import json
from typing import Any

import numpy as np
from record import write_record
from simulation import NUM_SAMPLES, RUN_NOISE_SD, SEED, simulate

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve

SLOPES = (0.8, 1.1, 1.5, 1.9, 2.4)
REACHES = (2.0, 2.8, 4.0, 5.7, 8.0, 11.3, 16.0, 22.6, 32.0, 45.2, 64.0)
CURVES_PER_CELL = 100
NUM_READINGS = 36
RHO = 0.4
START, CEILING = 0.3, 0.6
WANTED_SHARE = 0.8


def main() -> None:
    cells = {B: [measure(B, reach) for reach in REACHES] for B in SLOPES}
    needed = {B: reach_needed(np.array([cell["resolved"] for cell in row])) for B, row in cells.items()}
    report = {
        "settings": {
            "R_0": START,
            "A": CEILING,
            "readings": NUM_READINGS,
            "num_samples": NUM_SAMPLES,
            "run_noise_sd": RUN_NOISE_SD,
            "rho": RHO,
            "curves_per_cell": CURVES_PER_CELL,
            "wanted_share": WANTED_SHARE,
            "seed": SEED,
        },
        "reaches": REACHES,
        "results": [{"B": B, "reach_needed": needed[B], "cells": cells[B]} for B in SLOPES],
    }
    write_record("least_reach", report)
    print(json.dumps(needed, indent=1))


def measure(B: float, reach: float) -> dict[str, Any]:
    """Over the curves of one slope and one reach, in units of C_mid."""
    rng = np.random.default_rng([SEED, round(10 * B), round(10 * reach)])
    compute = np.linspace(0, reach, NUM_READINGS + 1)
    samples = np.full(compute.size, NUM_SAMPLES)
    errors, widths = [], []
    for _ in range(CURVES_PER_CELL):
        score = simulate(compute, A=CEILING, B=B, C_mid=1.0, R_0=START, rho=RHO, rng=rng)
        fit = fit_curve(Curve(name="c", compute=compute, score=score, samples=samples))
        errors.append(fit.eq1_A - CEILING)
        widths.append(np.inf if fit.eq1_hi is None or not fit.rises else fit.eq1_hi - fit.eq1_lo)
    median = float(np.median(widths))
    found = {
        "reach": reach,
        "resolved": round(float(np.mean(np.array(widths) <= 0.04)), 3),
        "A_rmse": round(float(np.sqrt(np.mean(np.square(errors)))), 4),
        "A_median_width": round(median, 4) if np.isfinite(median) else None,
    }
    print(B, found, flush=True)
    return found


def reach_needed(shares: np.ndarray) -> float | None:
    """Where the share first reaches what is wanted, interpolated in ln reach; None where it never does."""
    above = np.flatnonzero(shares >= WANTED_SHARE)
    if not above.size:
        return None
    first = int(above[0])
    if first == 0:
        return REACHES[0]
    logs = np.log(REACHES[first - 1 : first + 1])
    return round(float(np.exp(np.interp(WANTED_SHARE, shares[first - 1 : first + 1], logs))), 1)


if __name__ == "__main__":
    main()
