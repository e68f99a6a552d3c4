"""How often a healthy run is said to have collapsed, and how soon a decline is found.

    PYTHONPATH=platform:trainer python benchmarks/collapse_detection.py        # three minutes on one core

Truth, readings and noise as in `simulation.py`. Every run is judged at each evaluation, as training would. Healthy
runs go on to their full budget. A declining run follows its law up to a point drawn between C_mid and 3/4 of the
budget and falls from there at a constant rate; "stalls" are runs that stay level from there, which is no collapse.
Writes `results/collapse_detection.json`.
"""

import json
import time
from typing import Any

import numpy as np
from record import write_record
from simulation import NOISES, NUM_SAMPLES, RUN_NOISE_SD, START_LEVELS, TRUTHS, simulate

from ablations.fit.collapse import Collapse, find_collapse

DECLINES_PER_1K_GPU_HOURS = (0.005, 0.02, 0.05)
LATEST_ONSET = 0.75
"""Share of the budget."""
EVALUATIONS_AFTER_ONSET = 25
FIRST_JUDGED = 6
"""Readings beyond step 0 that a fit needs."""
NUM_RUNS = 60
NUM_RUNS_OF_OTHERS = 20
SEED = 2510
TIMED_READINGS = 36


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for samples_known in (True, False):
            results.append({"noise": noise, "samples_known": samples_known, **measure(rho, samples_known)})
            print(json.dumps(results[-1], indent=2))
    report = {
        "settings": {
            "start_levels": START_LEVELS,
            "num_samples": NUM_SAMPLES,
            "run_noise_sd": RUN_NOISE_SD,
            "runs": NUM_RUNS,
            "evaluations_after_onset": EVALUATIONS_AFTER_ONSET,
            "latest_onset_share_of_budget": LATEST_ONSET,
            "seed": SEED,
        },
        "results": results,
    }
    write_record("collapse_detection", report)


def measure(rho: float, samples_known: bool) -> dict[str, Any]:
    """False alarms, delays and cost under one noise."""
    rng = np.random.default_rng(SEED)
    healthy = [judge(*run(TRUTHS[0], index, rho, rng), samples_known) for index in range(NUM_RUNS)]
    others = {
        truth[0]: share(judge(*run(truth, index, rho, rng), samples_known) for index in range(NUM_RUNS_OF_OTHERS))
        for truth in TRUTHS[1:]
    }
    stalls = [declining(0.0, index, rho, rng, samples_known) for index in range(NUM_RUNS)]
    return {
        "false_alarms_of_healthy_runs": share(healthy),
        "false_alarms_of_other_rows": others,
        "alarms_of_stalls": share(found for found, _ in stalls),
        "declines_per_1k_gpu_hours": {
            str(rate): delays([declining(rate, index, rho, rng, samples_known) for index in range(NUM_RUNS)])
            for rate in DECLINES_PER_1K_GPU_HOURS
        },
        "ms_of_a_healthy_curve_of_36": cost(rho, rng, samples_known),
    }


def run(
    truth: tuple[str, float, float, float, float, float], index: int, rho: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Compute and score of a healthy run, step 0 first."""
    _, C_mid, B, A, every, budget = truth
    compute = np.arange(0, budget + 1, every, dtype=float)
    R_0 = START_LEVELS[index % len(START_LEVELS)]
    return compute, simulate(compute, A=A, B=B, C_mid=C_mid, R_0=R_0, rho=rho, rng=rng)


def declining(
    rate: float, index: int, rho: float, rng: np.random.Generator, samples_known: bool
) -> tuple[Collapse | None, int]:
    """What is found in a run that falls by `rate` in 1k GPU-hours, and its first reading beyond the onset."""
    _, C_mid, B, A, _, budget = TRUTHS[0]
    R_0 = START_LEVELS[index % len(START_LEVELS)]
    compute, score = run(TRUTHS[0], index, rho, rng)
    onset = rng.uniform(C_mid, LATEST_ONSET * budget)
    level, law = (R_0 + (A - R_0) / (1 + (C_mid / C) ** B) for C in (onset, np.maximum(compute, 1e-9)))
    # The noise of the run stays; only the law it follows changes.
    score = np.where(compute > onset, score - law + level - rate * (compute - onset) / 1000, score)
    first = int(np.searchsorted(compute, onset, side="right"))
    end = first + EVALUATIONS_AFTER_ONSET
    return judge(compute[:end], score[:end], samples_known), first - 1


def judge(compute: np.ndarray, score: np.ndarray, samples_known: bool) -> Collapse | None:
    """The first collapse found when a run is judged at every evaluation; readings count from the first after step 0."""
    for end in range(1 + FIRST_JUDGED, score.size + 1):
        seen = score[1:end]
        sampling_variance = float(np.mean(seen * (1 - seen))) / NUM_SAMPLES if samples_known else 0.0
        found = find_collapse(compute[1:end], seen, start_score=float(score[0]), sampling_variance=sampling_variance)
        if found is not None:
            return Collapse(index=found.index, alarm=end - 2)
    return None


def share(found: Any) -> float:
    return round(float(np.mean([collapse is not None for collapse in found])), 4)


def delays(runs: list[tuple[Collapse | None, int]]) -> dict[str, float | None]:
    """Evaluations from the first reading of the decline to the alarm, that reading counted; None stands for never."""
    late = [np.inf if found is None else found.alarm - first + 1 for found, first in runs]
    offsets = [found.index - (first - 1) for found, first in runs if found is not None and found.alarm >= first]
    quantiles = np.quantile(late, (0.1, 0.5, 0.9), method="inverted_cdf")
    names = ("evaluations_10_percent", "evaluations_median", "evaluations_90_percent")
    return {
        **{name: float(value) if np.isfinite(value) else None for name, value in zip(names, quantiles, strict=True)},
        "found_share": round(float(np.mean(np.isfinite(late))), 4),
        "alarm_before_onset_share": round(float(np.mean(np.array(late) < 1)), 4),
        "median_readings_kept_beyond_onset": float(np.median(offsets)),
    }


def cost(rho: float, rng: np.random.Generator, samples_known: bool) -> dict[str, float]:
    """Milliseconds of one call on healthy curves of 36 readings."""
    milliseconds = []
    for index in range(NUM_RUNS):
        compute, score = (values[1 : 1 + TIMED_READINGS] for values in run(TRUTHS[0], index, rho, rng))
        sampling_variance = float(np.mean(score * (1 - score))) / NUM_SAMPLES if samples_known else 0.0
        started = time.perf_counter()
        find_collapse(compute, score, sampling_variance=sampling_variance)
        milliseconds.append(1e3 * (time.perf_counter() - started))
    return {"median": round(float(np.median(milliseconds)), 2), "largest": round(max(milliseconds), 2)}


if __name__ == "__main__":
    main()
