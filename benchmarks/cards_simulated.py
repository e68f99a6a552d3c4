"""How often a card is wrong, where the truth of its claims is known.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/cards_simulated.py [NUM_STUDIES]

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 213 GPU-hours to 16k. Of the six
variants of a study two are equal to the reference, two have an A that is .03 higher, two need 1.5 times its compute.
Each run has an A of its own, drawn with a run-to-run sd, and in half of the cells a part that all variants of a seed
share, drawn with the same sd; that seeds are the same is known in all. Noise as in `simulation.py`, white in every
other study and AR(1) in the rest. Three seeds. Claims of each kind are judged of each variant:

    up .03, down .03       of the ceiling and of the level; wrong where it "holds" or is "opposite" against the truth,
                           or where "no difference of that size" is said of one that is as large
    same .03               wrong where it "holds" of a difference that is larger, or is "opposite" where it is not
    up 1.5, down 1.5,      the same of compute; of the variants with a higher A no ratio is known, and none is judged
    same 1.5

A difference of exactly the claimed size may be called the same or not: neither is counted as wrong. Writes
`results/cards_simulated.json`.
"""

import json
import math
import sys
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, simulate

from ablations.answers.compare import compare
from ablations.findings.claim_card import ClaimOutcome, judged_claim
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit
from ablations.study.claims import Claim

A, B, C_MID, R_0 = 0.610, 1.92, 2542, 0.3
EVERY, BUDGET = 213, 16_000
HIGHER, SLOWER = 0.03, 1.5
NUM_SEEDS = 3
NUM_STUDIES = 100
RUN_TO_RUN_SDS = (0.003, 0.0075, 0.015)
SHARED = (0, 1)
"""The sd of what variants of one seed share, over the run-to-run sd."""
VARIANTS = [f"{kind} {number}" for kind in ("equal", "higher", "slower") for number in range(2)]
CLAIMS = [
    Claim(variant="any", of=of, says=says, by=SLOWER if of == "compute" else HIGHER, source="simulated")
    for of in ("ceiling", "level", "compute")
    for says in ("up", "down", "same")
]


def main() -> None:
    num_studies = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_STUDIES
    results = [cell for sd in RUN_TO_RUN_SDS for shared in SHARED for cell in measure(sd, shared * sd, num_studies)]
    print(json.dumps(results, indent=1))
    if num_studies == NUM_STUDIES:
        settings = {"num_studies": num_studies, "num_pairs": 2 * num_studies, "num_seeds": NUM_SEEDS, "seed": SEED}
        write_record("cards_simulated", {"settings": settings, "results": results})


def measure(run_to_run_sd: float, shared_sd: float, num_studies: int) -> list[dict[str, Any]]:
    """Outcomes of every claim by what is true, and the share of them that is wrong."""
    rng = np.random.default_rng([SEED, round(1e6 * run_to_run_sd), round(1e6 * shared_sd)])
    rhos = list(NOISES.values())
    outcomes: dict[tuple[str, str, str], list[ClaimOutcome]] = {}
    for number in range(num_studies):
        fits = study(rng, rhos[number % len(rhos)], run_to_run_sd, shared_sd)
        for line in compare(fits, dict.fromkeys(fits, 1.0), "reference").variants[1:]:
            kind = line.name.split()[0]
            for claim in CLAIMS:
                if truth(kind, claim.of) is not None:
                    found = judged_claim(claim, line.answers[claim.of])
                    outcomes.setdefault((kind, claim.of, claim.says), []).append(found)
    return [
        {
            "run_to_run_sd": run_to_run_sd,
            "shared_sd": shared_sd,
            "truth": kind,
            "of": of,
            "says": says,
            "pairs": len(found),
            "wrong": round(float(np.mean([is_wrong(kind, of, says, one) for one in found])), 4),
            "decided": round(float(np.mean([one != "cannot tell" for one in found])), 4),
        }
        for (kind, of, says), found in outcomes.items()
    ]


def truth(kind: str, of: str) -> float | None:
    """The true difference, ln of a ratio for compute; None where none is defined."""
    match of:
        case "ceiling":
            return HIGHER if kind == "higher" else 0.0
        case "level":
            return level(kind) - level("equal")
        case _:
            return None if kind == "higher" else math.log(SLOWER) if kind == "slower" else 0.0


def level(kind: str) -> float:
    """Mean of the curve over the last third of the budget."""
    compute = np.linspace(BUDGET * 2 / 3, BUDGET, 1001)
    ceiling, midpoint = A + HIGHER * (kind == "higher"), C_MID * (SLOWER if kind == "slower" else 1)
    return float(np.mean(R_0 + (ceiling - R_0) / (1 + (midpoint / compute) ** B)))


def is_wrong(kind: str, of: str, says: str, outcome: ClaimOutcome) -> bool:
    """Whether the outcome is against the truth."""
    true, size = truth(kind, of), math.log(SLOWER) if of == "compute" else HIGHER
    assert true is not None
    if says == "same":
        if math.isclose(abs(true), size):
            return False
        return outcome == ("opposite" if abs(true) < size else "holds")
    signed = -true if says == "down" else true
    if outcome == "holds":
        return signed <= 0
    if outcome == "opposite":
        return signed >= 0
    return outcome == "no difference of that size" and signed > size * (1 - 1e-9)


def study(rng: np.random.Generator, rho: float, run_to_run_sd: float, shared_sd: float) -> dict[str, list[Fit]]:
    """Fits of the reference and of all variants, by name."""
    compute = np.arange(0, BUDGET + 1, EVERY, dtype=float)
    fits: dict[str, list[Fit]] = {}
    of_seed = shared_sd * rng.standard_normal(NUM_SEEDS)
    for name in ("reference", *VARIANTS):
        kind = name.split()[0]
        for seed in range(NUM_SEEDS):
            ceiling = A + HIGHER * (kind == "higher") + of_seed[seed] + run_to_run_sd * rng.standard_normal()
            midpoint = C_MID * (SLOWER if kind == "slower" else 1)
            score = simulate(compute, A=ceiling, B=B, C_mid=midpoint, R_0=R_0, rho=rho, rng=rng)
            samples = np.full(compute.size, NUM_SAMPLES)
            curve = Curve(name="run", compute=compute, score=score, samples=samples, start=f"seed {seed}")
            fits.setdefault(name, []).append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
    return fits


if __name__ == "__main__":
    main()
