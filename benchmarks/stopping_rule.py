"""What the stop rule saves and what it costs, over simulated runs with known laws.

    OMP_NUM_THREADS=1 python benchmarks/stopping_rule.py        # six minutes on one core

Rule: `stop: {gain_below: 0.01, probability: 0.9}`. Runs: the ten published fits (ScaleRL table 1, arXiv 2510.13786)
from R_0 of 0.2, 0.3 and 0.4, twice each; once all to 16,000 GPU-hours with an evaluation every 213, once each to the
budget and with the evaluations that it had. Readings and noise are those of `simulation.py`, fitted from 1,500
GPU-hours on. After each evaluation the readings so far are fitted and judged. A stopped run forgoes what its law
(without noise) gains from there to the full budget; forgone is too much where that exceeds 0.01. Beside the compute
saved stands what a rule that knew the law would save. Writes `results/stopping_rule.json`.
"""

import json
import time
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, START_LEVELS, TRUTHS, simulate

from ablations.answers.run_to_run import run_to_run
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.options import MIN_POINTS
from ablations.fit.result import Fit
from ablations.steering.live_fits import first_readings
from ablations.steering.stopping import StopReason, stop_reason
from ablations.study.sweep import Stop

GAIN_BELOW = 0.01
STOP = Stop(gain_below=GAIN_BELOW, probability=0.9)
SETTINGS = {"16,000 GPU-hours each": (213.0, 16_000.0), "each its own budget": None}
RUNS_PER_TRUTH = 2


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for setting, grid in SETTINGS.items():
            started = time.perf_counter()
            runs = simulate_runs(rho, grid)
            seconds = round(time.perf_counter() - started, 1)
            found = {"setting": setting, "noise": noise, **totals(runs), "seconds": seconds}
            print(json.dumps(found, indent=1), flush=True)
            results.append({**found, "runs": runs})
    report = {
        "settings": {
            "stop": STOP.model_dump(),
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "start_levels": START_LEVELS,
            "num_samples": NUM_SAMPLES,
            "seed": SEED,
        },
        "results": results,
    }
    write_record("stopping_rule", report)


def simulate_runs(rho: float, grid: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Every truth and start level, each run followed until the rule ends it or the budget does."""
    rng = np.random.default_rng(SEED)
    runs = []
    for _ in range(RUNS_PER_TRUTH):
        for name, C_mid, B, A, own_every, own_budget in TRUTHS:
            every, budget = grid or (own_every, own_budget)
            for R_0 in START_LEVELS:
                law = {"A": A, "B": B, "C_mid": C_mid, "R_0": R_0}
                compute = np.arange(0.0, budget + 1, every)
                score = simulate(compute, **law, rho=rho, rng=rng)
                curve = Curve(name=name, compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))
                runs.append({"truth": name, **law, "budget": budget, **follow(curve, law, budget)})
    return runs


def follow(curve: Curve, law: dict[str, float], budget: float) -> dict[str, Any]:
    """Where the rule ends a run, how sure it was, and what the law would have gained from there."""
    fits: list[Fit] = []
    too_few = int((curve.compute <= FIT_FROM_GPU_HOURS).sum()) + MIN_POINTS - 1
    is_flagged, finding = False, None
    for size in range(too_few + 1, curve.compute.size):
        fits.append(fit_curve(first_readings(curve, size), fit_from=FIT_FROM_GPU_HOURS))
        finding = judged(fits, curve.compute[:size], budget)
        is_flagged |= finding is not None and not finding.ends_run
        if finding and finding.ends_run:
            break
    stopped = finding is not None and finding.ends_run
    spent = float(curve.compute[too_few + len(fits) - 1]) if stopped else budget
    needed = next(now for now in curve.compute[too_few:].tolist() if gain(law, now, budget) < GAIN_BELOW)
    return {
        "stopped": stopped,
        "spent": spent,
        "probability": round(finding.value, 4) if finding and stopped else None,
        "spent_knowing_the_law": needed,
        "forgone": round(gain(law, spent, budget), 5),
        "flagged_as_collapsed": is_flagged,
    }


def judged(fits: list[Fit], compute: np.ndarray, budget: float) -> StopReason | None:
    newest = fits[-2:]
    return stop_reason(
        STOP,
        fits=newest,
        compute_now=compute[-len(newest) :].tolist(),
        budget=budget,
        truncation=None,
        reference_fits=[],
        spread=run_to_run([]),
    )


def gain(law: dict[str, float], compute: float, budget: float) -> float:
    """R(budget) - R(compute) of ScaleRL eq. 1."""
    now, end = (1 / (1 + (law["C_mid"] / c) ** law["B"]) for c in (compute, budget))
    return (law["A"] - law["R_0"]) * (end - now)


def totals(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Over all runs: compute saved, gains forgone."""
    forgone = np.array([run["forgone"] for run in runs])

    def saved(spent: str) -> float:
        """Mean over runs of the share of the budget that was not spent."""
        return round(1 - float(np.mean([run[spent] / run["budget"] for run in runs])), 4)

    return {
        "num_runs": len(runs),
        "num_stopped": sum(run["stopped"] for run in runs),
        "compute_saved": saved("spent"),
        "compute_saved_knowing_the_law": saved("spent_knowing_the_law"),
        "share_forgoing_too_much": round(float(np.mean(forgone > GAIN_BELOW)), 4),
        "forgone_mean": round(float(forgone.mean()), 5),
        "forgone_max": round(float(forgone.max()), 5),
        "num_flagged_as_collapsed": sum(run["flagged_as_collapsed"] for run in runs),
    }


if __name__ == "__main__":
    main()
