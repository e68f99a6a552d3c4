"""How often two equal variants are called different, and how often a true difference is found.

    PYTHONPATH=platform:trainer python benchmarks/comparison_power.py    # four minutes

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 213 GPU-hours to 16k, fitted from
1.5k on, at half and at the full budget. Each run has an A of its own, drawn with sd 0.0075 about its variant's (three
ScaleRL runs lay within +-0.015). Noise as in `simulation.py`. One and three seeds a variant. Beside the verdict: the
paper's own rule, a difference in A over 0.02.
Writes `results/comparison_power.json`.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, simulate

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit
from ablations.verdict.compare import compare

A, B, C_MID, R_0 = 0.610, 1.92, 2542, 0.3
EVERY, BUDGET = 213, 16_000
RUN_TO_RUN_SD = 0.0075
TRUE_DIFFERENCE = 0.03
NUM_PAIRS = 300


def main() -> None:
    results = []
    for noise, rho in NOISES.items():
        for share in (0.5, 1.0):
            results += measure(noise, rho, share)
            print(json.dumps(results[-2:], indent=1))
    report = {
        "settings": {
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "run_to_run_sd": RUN_TO_RUN_SD,
            "true_difference": TRUE_DIFFERENCE,
            "num_pairs": NUM_PAIRS,
            "seed": SEED,
        },
        "results": results,
    }
    write_record("comparison_power", report)


def measure(noise: str, rho: float, share: float) -> list[dict[str, Any]]:
    """Shares of pairs called different, with one and with three seeds a variant."""
    rng = np.random.default_rng(SEED)
    found: dict[int, dict[str, list[bool]]] = {1: {}, 3: {}}
    for _ in range(NUM_PAIRS):
        reference, equal, higher = (runs(rng, rho, share, A + more) for more in (0.0, 0.0, TRUE_DIFFERENCE))
        for num_seeds, calls in found.items():
            groups = {"reference": reference, "equal": equal, "higher": higher}
            lines = compare(
                {name: fits[:num_seeds] for name, fits in groups.items()}, dict.fromkeys(groups, 1.0), "reference"
            ).variants
            for line in lines[1:]:
                calls.setdefault(f"{line.curve}: verdict", []).append(line.difference.startswith("ceiling"))
                calls.setdefault(f"{line.curve}: paper's rule", []).append(line.paper_rule.startswith("ceiling"))
                calls.setdefault(f"{line.curve}: efficiency", []).append(line.efficiency.endswith("compute"))
    return [
        {"noise": noise, "fitted_share_of_budget": share, "seeds": num_seeds}
        | {name: round(float(np.mean(called)), 4) for name, called in calls.items()}
        for num_seeds, calls in found.items()
    ]


def runs(rng: np.random.Generator, rho: float, share: float, ceiling: float) -> Sequence[Fit]:
    """Three runs of one variant, fitted."""
    compute = np.arange(0, share * BUDGET + 1, EVERY, dtype=float)
    fits = []
    for _ in range(3):
        own = ceiling + RUN_TO_RUN_SD * rng.standard_normal()
        score = simulate(compute, A=own, B=B, C_mid=C_MID, R_0=R_0, rho=rho, rng=rng)
        curve = Curve(name="run", compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))
        fits.append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
    return fits


if __name__ == "__main__":
    main()
