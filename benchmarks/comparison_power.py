"""How often equal variants are called different, and how often a true difference is found, in sweeps of nine variants.

    PYTHONPATH=platform:trainer python benchmarks/comparison_power.py    # about fifteen minutes

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 213 GPU-hours to 16k, fitted from
1.5k on. Of the nine variants the reference and four others are equal, four have an A that is .03 higher. Each run has
an A of its own, drawn about its variant's with a run-to-run sd that the comparison does not know. Noise as in
`simulation.py`, white in every other sweep and AR(1) in the rest. The first 1, 2, 3 and 5 seeds are compared. Beside
the verdicts: the paper's own rule, a difference in A over 0.02. The four pairs of a sweep share the reference, so that
200 pairs say less than 200 would; levels, which need no fit, are simulated by themselves as well, in 500 sweeps: a
level with its run-to-run sd and a sampling sd of .002. Writes `results/comparison_power.json`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, simulate

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit
from ablations.verdict.compare import compare
from ablations.verdict.level import Level, level_difference, level_repeats
from ablations.verdict.rules import level_rule
from ablations.verdict.run_to_run import run_to_run

A, B, C_MID, R_0 = 0.610, 1.92, 2542, 0.3
EVERY, BUDGET = 213, 16_000
RUN_TO_RUN_SDS = (0.003, 0.0075, 0.015, 0.03)
TRUE_DIFFERENCE = 0.03
EQUAL, HIGHER = [f"equal {n}" for n in range(4)], [f"higher {n}" for n in range(4)]
SEEDS = (1, 2, 3, 5)
NUM_SWEEPS = 50
NUM_LEVEL_SWEEPS = 500
LEVEL_SD = 0.002
"""Of a level given its run: its finite samples."""


def main() -> None:
    results = []
    for run_to_run_sd in RUN_TO_RUN_SDS:
        results += measure(run_to_run_sd)
        print(json.dumps(results[-len(SEEDS) :], indent=1), flush=True)
    report = {
        "settings": {
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "true_difference": TRUE_DIFFERENCE,
            "num_sweeps": NUM_SWEEPS,
            "num_pairs": NUM_SWEEPS * len(EQUAL),
            "num_level_pairs": NUM_LEVEL_SWEEPS * len(EQUAL),
            "seed": SEED,
        },
        "results": results,
        "levels": [levels(sd, num_seeds) for sd in RUN_TO_RUN_SDS for num_seeds in SEEDS],
    }
    write_record("comparison_power", report)


def measure(run_to_run_sd: float) -> list[dict[str, Any]]:
    """Shares of pairs called different, by number of seeds."""
    rng = np.random.default_rng([SEED, round(1e6 * run_to_run_sd)])
    rhos = list(NOISES.values())
    sweeps = [sweep(rng, rhos[number % len(rhos)], run_to_run_sd) for number in range(NUM_SWEEPS)]
    return [{"run_to_run_sd": run_to_run_sd, "seeds": num_seeds} | shares(sweeps, num_seeds) for num_seeds in SEEDS]


def shares(sweeps: Sequence[Mapping[str, Sequence[Fit]]], num_seeds: int) -> dict[str, float]:
    """Shares of the pairs that each verdict calls different."""
    calls: dict[str, list[float]] = {}
    for fits in sweeps:
        some = {name: of_variant[:num_seeds] for name, of_variant in fits.items()}
        comparison = compare(some, dict.fromkeys(some, 1.0), "reference")
        for line in comparison.variants[1:]:
            kind = line.curve.split()[0]
            calls.setdefault(f"{kind}: level", []).append(line.level_difference.startswith("level"))
            calls.setdefault(f"{kind}: ceiling", []).append(line.difference.startswith("ceiling"))
            calls.setdefault(f"{kind}: efficiency", []).append(line.efficiency.endswith("compute"))
            calls.setdefault(f"{kind}: paper's rule", []).append(line.paper_rule.startswith("ceiling"))
    return {name: round(float(np.mean(called)), 4) for name, called in calls.items()}


def levels(run_to_run_sd: float, num_seeds: int) -> dict[str, float]:
    """Shares of the pairs whose levels are called different, of sweeps of levels alone."""
    rng = np.random.default_rng([SEED, round(1e6 * run_to_run_sd), num_seeds])
    truth = np.repeat([0.0, TRUE_DIFFERENCE], [1 + len(EQUAL), len(HIGHER)])[:, None]
    sd = np.hypot(run_to_run_sd, LEVEL_SD)
    called: dict[str, list[bool]] = {"equal": [], "higher": []}
    for _ in range(NUM_LEVEL_SWEEPS):
        values = truth + sd * rng.standard_normal((truth.size, num_seeds))
        variants = [[Level(value=value, variance=LEVEL_SD**2) for value in row] for row in values]
        spread = run_to_run([level_repeats(variant) for variant in variants] if num_seeds > 1 else [])
        for place, variant in enumerate(variants[1:]):
            verdict = level_rule(level_difference(variant, variants[0], spread))
            called["equal" if place < len(EQUAL) else "higher"].append(verdict.startswith("level"))
    of_kind = {f"{kind}: level": round(float(np.mean(those)), 4) for kind, those in called.items()}
    return {"run_to_run_sd": run_to_run_sd, "seeds": num_seeds} | of_kind


def sweep(rng: np.random.Generator, rho: float, run_to_run_sd: float) -> dict[str, list[Fit]]:
    """Fits of nine variants, as many seeds of each as the largest design has."""
    compute = np.arange(0, BUDGET + 1, EVERY, dtype=float)
    fits: dict[str, list[Fit]] = {}
    for name in ("reference", *EQUAL, *HIGHER):
        ceiling = A + TRUE_DIFFERENCE * (name in HIGHER)
        for _ in range(max(SEEDS)):
            own = ceiling + run_to_run_sd * rng.standard_normal()
            score = simulate(compute, A=own, B=B, C_mid=C_MID, R_0=R_0, rho=rho, rng=rng)
            curve = Curve(name="run", compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))
            fits.setdefault(name, []).append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
    return fits


if __name__ == "__main__":
    main()
