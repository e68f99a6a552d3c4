"""How often the 95 % intervals of a fit hold the truth, over simulated curves with known parameters.

    PYTHONPATH=platform:trainer python benchmarks/fit_coverage.py        # two minutes on one core

Truth: the ten published fits (ScaleRL table 1, arXiv 2510.13786) from R_0 of 0.2, 0.3 and 0.4. Readings every 213
GPU-hours to 16k (other budgets for the runs that had them); fitted are step 0 and the readings between 1.5k and half
the budget. Noise: binomial over 1,000 prompts x 16 samples, plus run noise of sd 0.0045, white or AR(1) with rho 0.7.
Writes `results/fit_coverage.json`.
"""

import json
import os
import time
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ablations.curve import Curve
from ablations.fit import Fit, fit_curve

# Run, C_mid, B, A, GPU-hours between readings, budget.
TRUTHS = [
    ("ScaleRL", 2542, 1.92, 0.610, 213, 16_000),
    ("ScaleRL-32k", 11272, 1.89, 0.645, 680, 50_000),
    ("ScaleRL-8gen", 2542, 2.44, 0.585, 213, 16_000),
    ("ScaleRL-24gen", 3054, 2.22, 0.590, 213, 16_000),
    ("ScaleRL-32gen", 2936, 2.07, 0.595, 213, 16_000),
    ("ScaleRL-Scout", 4242, 1.65, 0.710, 620, 45_000),
    ("ScaleRL-bs512", 2818, 1.77, 0.605, 213, 16_000),
    ("ScaleRL-bs2048", 10909, 1.70, 0.645, 1350, 100_000),
    ("math+code, math", 2896, 2.05, 0.595, 213, 16_000),
    ("math+code, code", 1675, 1.09, 0.615, 213, 16_000),
]
START_LEVELS = (0.2, 0.3, 0.4)
FIT_FROM_GPU_HOURS = 1500
FIT_TO_SHARE_OF_BUDGET = 0.5
NUM_SAMPLES = 16_000
RUN_NOISE_SD = 0.0045
NOISES = {"white": 0.0, "AR(1) rho 0.7": 0.7}
CURVES_PER_TRUTH = 20
SEED = 251013786
RESULTS = Path(__file__).parent / "results" / "fit_coverage.json"


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for samples_known in (True, False):
            results.append({"noise": noise, "samples_known": samples_known, **measure(rho, samples_known)})
            print(json.dumps(results[-1], indent=2))
    report = {
        "date": date.today().isoformat(),
        "machine": {"processor": processor_name(), "cores": os.cpu_count()},
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
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


def measure(rho: float, samples_known: bool) -> dict[str, Any]:
    """Coverage, bias and RMSE over every truth and start level."""
    rng = np.random.default_rng(SEED)
    fits: list[Fit] = []
    truths: list[dict[str, float]] = []
    seconds: list[float] = []
    for _ in range(CURVES_PER_TRUTH):
        for name, C_mid, B, A, every, budget in TRUTHS:
            for R_0 in START_LEVELS:
                truths.append({"A": A, "B": B, "C_mid": C_mid, "R_0": R_0})
                compute = np.arange(0, FIT_TO_SHARE_OF_BUDGET * budget + 1, every, dtype=float)
                score = simulate(compute, **truths[-1], rho=rho, rng=rng)
                samples = np.full(compute.size, NUM_SAMPLES) if samples_known else None
                curve = Curve(name=name, compute=compute, score=score, samples=samples)
                started = time.perf_counter()
                fits.append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
                seconds.append(time.perf_counter() - started)
    A_error = np.array([fit.A - truth["A"] for fit, truth in zip(fits, truths, strict=True)])
    widths = [fit.A_hi - fit.A_lo for fit in fits if fit.A_hi is not None]
    return {
        "num_curves": len(fits),
        "coverage_of_95_percent_intervals": {name: coverage(fits, truths, name) for name in ("A", "B", "C_mid", "R_0")},
        "A_bias": round(float(A_error.mean()), 5),
        "A_rmse": round(float(np.sqrt(np.mean(A_error**2))), 5),
        "ln_B_rmse": log_rmse(fits, truths, "B"),
        "ln_C_mid_rmse": log_rmse(fits, truths, "C_mid"),
        "A_median_width": round(float(np.median(widths)), 5),
        "A_unbounded_share": round(1 - len(widths) / len(fits), 4),
        "verdicts": dict(Counter(fit.verdict for fit in fits)),
        "median_ms_per_fit": round(1e3 * float(np.median(seconds)), 2),
    }


def simulate(
    compute: np.ndarray, *, A: float, B: float, C_mid: float, R_0: float, rho: float, rng: np.random.Generator
) -> np.ndarray:
    """Measured pass rates of a run that follows eq. 1; the first compute is 0."""
    law = np.append(R_0, R_0 + (A - R_0) / (1 + (C_mid / compute[1:]) ** B))
    run_noise = RUN_NOISE_SD * rng.standard_normal(compute.size)
    for index in range(1, compute.size):
        run_noise[index] = rho * run_noise[index - 1] + np.sqrt(1 - rho**2) * run_noise[index]
    return rng.binomial(NUM_SAMPLES, np.clip(law + run_noise, 0, 1)) / NUM_SAMPLES


def coverage(fits: list[Fit], truths: list[dict[str, float]], name: str) -> float:
    """Share of fits whose interval holds the true value; an end that is None sets no limit."""

    def holds(fit: Fit, truth: dict[str, float]) -> bool:
        lo, hi = getattr(fit, f"{name}_lo"), getattr(fit, f"{name}_hi")
        return (lo is None or lo <= truth[name]) and (hi is None or truth[name] <= hi)

    return round(float(np.mean([holds(fit, truth) for fit, truth in zip(fits, truths, strict=True)])), 4)


def log_rmse(fits: list[Fit], truths: list[dict[str, float]], name: str) -> float:
    errors = [np.log(getattr(fit, name) / truth[name]) for fit, truth in zip(fits, truths, strict=True)]
    return round(float(np.sqrt(np.mean(np.square(errors)))), 4)


def processor_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    main()
