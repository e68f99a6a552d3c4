"""How often the 95 % intervals of a fit hold the truth, over simulated curves with known parameters.

    PYTHONPATH=platform:trainer python benchmarks/fit_coverage.py        # two minutes on one core

Truth: the ten published fits (ScaleRL table 1, arXiv 2510.13786) from R_0 of 0.2, 0.3 and 0.4. Readings every 213
GPU-hours to 16k (other budgets for the runs that had them); fitted are step 0 and the readings between 1.5k and half
the budget. Noise: binomial over 1,000 prompts x 16 samples, plus run noise of sd 0.0045, white or AR(1) with rho 0.7.
Writes `results/fit_coverage.json`.
"""

import json
import time
from collections import Counter
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

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

CURVES_PER_TRUTH = 20
CURVES_AT_C_MID = 20


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for samples_known in (True, False):
            results.append({"noise": noise, "samples_known": samples_known, **measure(rho, samples_known)})
            print(json.dumps(results[-1], indent=2))
    at_c_mid = [{"noise": noise, **measure_at_c_mid(rho)} for noise, rho in NOISES.items()]
    print(json.dumps(at_c_mid, indent=2))
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
        "readings_that_end_at_c_mid": at_c_mid,
    }
    write_record("fit_coverage", report)


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
    A_error = np.array([fit.eq1_A - truth["A"] for fit, truth in zip(fits, truths, strict=True)])
    bounded = [fit for fit in fits if fit.eq1_hi is not None and fit.ceiling.hi is not None]
    ratios = [((fit.ceiling.hi or 1) - fit.ceiling.lo) / ((fit.eq1_hi or 1) - fit.eq1_lo) for fit in bounded]
    widths = [fit.eq1_hi - fit.eq1_lo for fit in fits if fit.eq1_hi is not None]
    return {
        "num_curves": len(fits),
        "coverage_of_A_over_all_families": ceiling_coverage(fits, truths),
        "median_ratio_of_its_width_to_eq_1s": round(float(np.median(ratios)), 3),
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


def measure_at_c_mid(rho: float) -> dict[str, Any]:
    """The same where the readings, 36 of them from 0 on, end at C_mid: what do the verdicts say there?"""
    rng = np.random.default_rng(SEED)
    fits, truths = [], []
    for _ in range(CURVES_AT_C_MID):
        for name, C_mid, B, A, _, _ in TRUTHS:
            truths.append({"A": A})
            compute = np.linspace(0, C_mid, 37)
            score = simulate(compute, A=A, B=B, C_mid=C_mid, R_0=0.3, rho=rho, rng=rng)
            fits.append(fit_curve(Curve(name=name, compute=compute, score=score, samples=np.full(37, NUM_SAMPLES))))
    return {
        "num_curves": len(fits),
        "coverage_of_A": coverage(fits, truths, "A"),
        "coverage_of_A_over_all_families": ceiling_coverage(fits, truths),
        "verdicts": dict(Counter(fit.verdict for fit in fits)),
        "widest_interval_of_a_resolved_fit": max(
            (round(fit.ceiling.hi - fit.ceiling.lo, 4) for fit in fits if fit.verdict == "resolved" and fit.ceiling.hi),
            default=None,
        ),
    }


def coverage(fits: list[Fit], truths: list[dict[str, float]], name: str) -> float:
    """Share of fits whose interval holds the true value; an end that is None sets no limit."""

    def holds(fit: Fit, truth: dict[str, float]) -> bool:
        lo, hi = getattr(fit, f"{name}_lo"), getattr(fit, f"{name}_hi")
        return (lo is None or lo <= truth[name]) and (hi is None or truth[name] <= hi)

    return round(float(np.mean([holds(fit, truth) for fit, truth in zip(fits, truths, strict=True)])), 4)


def ceiling_coverage(fits: list[Fit], truths: list[dict[str, float]]) -> float:
    """The same of A over all families."""
    held = [
        fit.ceiling.lo <= truth["A"] and (fit.ceiling.hi is None or truth["A"] <= fit.ceiling.hi)
        for fit, truth in zip(fits, truths, strict=True)
    ]
    return round(float(np.mean(held)), 4)


def log_rmse(fits: list[Fit], truths: list[dict[str, float]], name: str) -> float:
    errors = [np.log(getattr(fit, name) / truth[name]) for fit, truth in zip(fits, truths, strict=True)]
    return round(float(np.sqrt(np.mean(np.square(errors)))), 4)


if __name__ == "__main__":
    main()
