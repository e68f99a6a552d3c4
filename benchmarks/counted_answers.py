"""What a fit gains by right answers counted by prompt: curves of the same readings, with counts and with samples alone.

    PYTHONPATH=platform:trainer python benchmarks/counted_answers.py        # five minutes on one core

Truth, readings and run noise are those of `fit_coverage`; a reading has 8 answers to each of the same 256 prompts. One
prompt in eight is right half of the time, the others are solved one after the other, never or always right: given the
prompts the variance is about an eighth of p (1 - p) / n, as it is of trained runs (`evaluation_noise`). Writes
`results/counted_answers.json`.
"""

import json
from typing import Any

import numpy as np
from record import write_record
from simulation import (
    FIT_FROM_GPU_HOURS,
    FIT_TO_SHARE_OF_BUDGET,
    NOISES,
    RUN_NOISE_SD,
    SEED,
    START_LEVELS,
    TRUTHS,
)

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.prompt_noise import answer_variance
from ablations.fit.result import Fit

CURVES_PER_TRUTH = 7
NUM_PROMPTS, SAMPLES, OF_TWO_MINDS = 256, 8, 32


def main() -> None:
    report = {
        "settings": {
            "prompts": NUM_PROMPTS,
            "samples_of_each": SAMPLES,
            "right_half_of_the_time": OF_TWO_MINDS,
            "run_noise_sd": RUN_NOISE_SD,
            "start_levels": START_LEVELS,
            "seed": SEED,
        },
        "results": [{"noise": name, **fits(rho)} for name, rho in NOISES.items()],
    }
    print(json.dumps(report, indent=1))
    write_record("counted_answers", report)


def fits(rho: float) -> dict[str, Any]:
    """Coverage and width of A with counts by prompt and without."""
    rng = np.random.default_rng(SEED)
    ceilings: list[float] = []
    found: dict[str, list[Fit]] = {"by_counts": [], "by_samples": []}
    for _ in range(CURVES_PER_TRUTH):
        for name, C_mid, B, A, every, budget in TRUTHS:
            for R_0 in START_LEVELS:
                compute = np.arange(0, FIT_TO_SHARE_OF_BUDGET * budget + 1, every, dtype=float)
                law = np.append(R_0, R_0 + (A - R_0) / (1 + (C_mid / compute[1:]) ** B))
                curve = measured(name, compute, law, rho, rng)
                as_samples = Curve(name=name, compute=compute, score=curve.score, samples=curve.samples)
                ceilings.append(A)
                found["by_counts"].append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
                found["by_samples"].append(fit_curve(as_samples, fit_from=FIT_FROM_GPU_HOURS))
    return {"num_curves": len(ceilings)} | {name: said_of(some, ceilings) for name, some in found.items()}


def measured(name: str, compute: np.ndarray, law: np.ndarray, rho: float, rng: np.random.Generator) -> Curve:
    """The law with run noise, by answers to the same prompts at every reading."""
    run_noise = RUN_NOISE_SD * rng.standard_normal(compute.size)
    for index in range(1, compute.size):
        run_noise[index] = rho * run_noise[index - 1] + np.sqrt(1 - rho**2) * run_noise[index]
    others, judged = NUM_PROMPTS - OF_TWO_MINDS, np.full(NUM_PROMPTS, SAMPLES)
    score, variance = [], []
    for rate in law + run_noise:
        solved = rate * NUM_PROMPTS - OF_TWO_MINDS / 2
        p = np.append(np.full(OF_TWO_MINDS, 0.5), np.clip(solved - np.arange(others), 0, 1))
        right = rng.binomial(SAMPLES, p)
        score.append(right.sum() / judged.sum())
        variance.append(answer_variance(right, judged))
    samples = np.full(compute.size, NUM_PROMPTS * SAMPLES)
    return Curve(name=name, compute=compute, score=np.array(score), samples=samples, answer_variance=np.array(variance))


def said_of(found: list[Fit], ceilings: list[float]) -> dict[str, Any]:
    """Of intervals of A."""
    widths = [np.inf if fit.eq1_hi is None else fit.eq1_hi - fit.eq1_lo for fit in found]
    held = [fit.eq1_lo <= A and (fit.eq1_hi is None or fit.eq1_hi >= A) for fit, A in zip(found, ceilings, strict=True)]
    median = float(np.median(widths))
    return {
        "coverage_of_A": round(float(np.mean(held)), 4),
        "A_median_width": round(median, 4) if np.isfinite(median) else None,
        "resolved": round(float(np.mean([fit.verdict == "resolved" for fit in found])), 4),
        "A_unbounded": round(float(np.mean(np.isinf(widths))), 4),
        "sampling_sd": round(float(np.mean([fit.readings.sampling_variance for fit in found])) ** 0.5, 5),
        "samples_doubted": round(
            float(np.mean([any("scatter by" in text for text in fit.oddities) for fit in found])), 4
        ),
    }


if __name__ == "__main__":
    main()
