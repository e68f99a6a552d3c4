"""How often the automatic cut-off leaves out an early phase that lies off eq. 1, and what it costs runs without one.

    python benchmarks/cutoff.py          # five minutes on an idle core

Runs: the first fit of ScaleRL table 1 (arXiv 2510.13786) from R_0 = 0.3, a reading every 213 GPU-hours to 8k (37 beyond
step 0), noise as in `simulation.py`. The early phase ends at 1.5k GPU-hours and is one of

    none        eq. 1 from the start
    step        eq. 1 plus a constant
    straight    a line from R_0 to eq. 1 at 1.5k

Found: no reading of the early phase is fitted. Refused: of the blocks of readings that follow eq. 1 and were asked
about, the share called off the law. Bias: mean of A less the truth. Writes `results/cutoff.json`.
"""

import json
from typing import Any

import numpy as np
from record import write_record
from simulation import NOISES, NUM_SAMPLES, SEED, simulate

from ablations.fit.curve import Curve
from ablations.fit.cutoff import BLOCK_READINGS, num_early
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

TRUTH = {"A": 0.610, "B": 1.92, "C_mid": 2542.0, "R_0": 0.3}
EARLY_GPU_HOURS = 1500.0
RUNS = 120
STEPS = (0.02, 0.03, 0.05, -0.05)


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for phase in ("none", "straight", *STEPS):
            results.append({"noise": noise, "early_phase": phase, **measure(phase, rho)})
            print(json.dumps(results[-1]), flush=True)
    report = {
        "settings": {"truth": TRUTH, "runs": RUNS, "early_gpu_hours": EARLY_GPU_HOURS, "seed": SEED},
        "results": results,
    }
    write_record("cutoff", report)


def measure(phase: str | float, rho: float) -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    fits = [fit_curve(one_run(phase, rho, rng), fit_from="auto") for _ in range(RUNS)]
    cutoffs = [cutoff_of(fit) for fit in fits]
    if phase == "none":
        asked, refused = (sum(counts) for counts in zip(*map(blocks, cutoffs), strict=True))
        told = {"blocks": asked, "refused": refused / asked}
    else:
        told = {"found": float(np.mean([cutoff >= last_early() for cutoff in cutoffs]))}
    return told | {
        "median_fit_from": float(np.median(cutoffs)),
        "bias_A": float(np.mean([fit.eq1_A - TRUTH["A"] for fit in fits])),
    }


def grid() -> np.ndarray:
    return np.arange(0.0, 8001.0, 213.0)


def last_early() -> float:
    """The last reading of the early phase."""
    return float(grid()[grid() < EARLY_GPU_HOURS][-1])


def one_run(phase: str | float, rho: float, rng: np.random.Generator) -> Curve:
    compute = grid()
    score = simulate(compute, **TRUTH, rho=rho, rng=rng)
    early = (compute > 0) & (compute < EARLY_GPU_HOURS)
    score = score + early * (straight(compute) - law(compute) if phase == "straight" else 0.0)
    score = score + early * (phase if isinstance(phase, float) else 0.0)
    return Curve(name="run", compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))


def law(compute: np.ndarray) -> np.ndarray:
    gain = TRUTH["A"] - TRUTH["R_0"]
    return TRUTH["R_0"] + gain / (1 + (TRUTH["C_mid"] / np.maximum(compute, 1e-9)) ** TRUTH["B"])


def straight(compute: np.ndarray) -> np.ndarray:
    end = float(law(np.array([EARLY_GPU_HOURS]))[0])
    return TRUTH["R_0"] + (end - TRUTH["R_0"]) * compute / EARLY_GPU_HOURS


def cutoff_of(fit: Fit) -> float:
    assert isinstance(fit.settings.fit_from, float)
    return fit.settings.fit_from


def blocks(cutoff: float) -> tuple[int, int]:
    """How many blocks were asked about, and whether the last of them was refused."""
    early = num_early(grid().size - 1)
    left = int(np.sum((grid() > 0) & (grid() <= cutoff)))
    accepted = -(-(early - left) // BLOCK_READINGS)
    return accepted + (cutoff > 0), int(cutoff > 0)


if __name__ == "__main__":
    main()
