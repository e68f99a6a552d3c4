"""How good forecasts of the full budget are, from fits on its first half, over simulated curves with known truth.

    PYTHONPATH=platform:trainer OMP_NUM_THREADS=1 python benchmarks/forecast.py        # six minutes on one core

The set-up of `simulation.py`: the ten published fits (ScaleRL table 1, arXiv 2510.13786), 400 curves white and 400
with AR(1) run noise of rho 0.7, fitted on step 0 and the readings between 1.5k GPU-hours and half the budget. The same
once more with the reading at step 0 taken 0.10 below the law. Compared are the curve's true pass rate at the full
budget, which is twice the fitted range, with the 95 % interval and with three point predictions: that of the fit, the
median of eq. 1's draws, and the median of the draws averaged over families. Baseline: the paper's grid
(`ablations.answers.paper_grid`). Writes `results/forecast.json`.
"""

import json
from typing import Any

import numpy as np
from record import write_record
from simulation import (
    FIT_FROM_GPU_HOURS,
    FIT_TO_SHARE_OF_BUDGET,
    NOISES,
    NUM_SAMPLES,
    RUN_NOISE_SD,
    SEED,
    START_LEVELS,
    TRUTHS,
    simulate,
)

from ablations.answers.forecasts import joint_draws, predict
from ablations.answers.paper_grid import paper_fit
from ablations.answers.run_to_run import run_to_run
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve

NUM_CURVES = 400
OFF_THE_LAW = 0.10


def main() -> None:
    results = []
    for off in (0.0, OFF_THE_LAW):
        for noise, rho in NOISES.items():
            results.append({"noise": noise, "step_0_below_the_law": off, **measure(rho, off)})
            print(json.dumps(results[-1], indent=2), flush=True)
    report = {
        "settings": {
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "fit_to_share_of_budget": FIT_TO_SHARE_OF_BUDGET,
            "start_levels": START_LEVELS,
            "num_samples": NUM_SAMPLES,
            "run_noise_sd": RUN_NOISE_SD,
            "r0": "anchored",
            "seed": SEED,
        },
        "results": results,
    }
    write_record("forecast", report)


def measure(rho: float, off: float) -> dict[str, Any]:
    """Coverage and errors of the prediction at the full budget, over truths and start levels in turn."""
    rng = np.random.default_rng(SEED)
    cases = [(truth, R_0) for truth in TRUTHS for R_0 in START_LEVELS]
    is_held, widths, sigmoid_weights = [], [], []
    errors: dict[str, list[float]] = {
        name: [] for name in ("forecast", "fit", "median of eq. 1", "median of average", "paper")
    }
    for index in range(NUM_CURVES):
        (name, C_mid, B, A, every, budget), R_0 = cases[index % len(cases)]
        compute = np.arange(0, FIT_TO_SHARE_OF_BUDGET * budget + 1, every, dtype=float)
        score = simulate(compute, A=A, B=B, C_mid=C_mid, R_0=R_0, rho=rho, rng=rng)
        score[0] -= off
        curve = Curve(name=name, compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))
        truth = R_0 + (A - R_0) / (1 + (C_mid / budget) ** B)
        fit = fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS)
        predicted = predict([fit], budget, run_to_run([]))
        is_held.append(predicted.lo <= truth <= predicted.hi)
        widths.append(predicted.hi - predicted.lo)
        sigmoid_weights.append(fit.alternatives.weights["sigmoid"])
        errors["fit"].append(float(fit.predict(budget)[0]) - truth)
        errors["forecast"].append(predicted.estimate - truth)
        errors["median of eq. 1"].append(float(np.median(joint_draws([fit], budget, eq1_alone=True))) - truth)
        errors["median of average"].append(float(np.median(joint_draws([fit], budget))) - truth)
        errors["paper"].append(
            float(paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS, budget=budget).predict(budget)[0]) - truth
        )
    return {
        "num_curves": NUM_CURVES,
        "coverage_of_95_percent_interval": round(float(np.mean(is_held)), 4),
        "median_width": round(float(np.median(widths)), 5),
        "mean_weight_of_eq_1": round(float(np.mean(sigmoid_weights)), 3),
        "mean_absolute_error": {name: round(float(np.mean(np.abs(found))), 5) for name, found in errors.items()},
        "mean_error": {name: round(float(np.mean(found)), 5) for name, found in errors.items()},
    }


if __name__ == "__main__":
    main()
