"""Whether studies see the differences that `platform design` says they see in four of five cases.

    PYTHONPATH=platform:trainer python benchmarks/design_power.py    # a quarter of an hour

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 500 GPU-hours of 16,000 samples, run
noise of sd .0045, AR(1) with rho .4. For each design `platform design` foretells the half-width of each interval and
the smallest difference seen with 80 % power. Then sweeps of five variants are simulated, of which three differ from the
reference by just that (a level or a ceiling that is lower, a compute that is larger), and one does not. Their runs are
fitted and compared by `ablations.answers.compare`, and it is counted how often the three are called different, and how
many intervals have no end. Every run has an A of its own, drawn about its variant's.
Writes `results/design_power.json`.
"""

import json
import sys
from typing import Any

import numpy as np
from record import write_record
from simulation import SEED, simulate

from ablations.answers.compare import Comparison, VariantResult, compare
from ablations.answers.half_widths import Sight, Sizes, sights
from ablations.answers.known_scale import PAPER_AUTOCORRELATION, PAPER_RUN_SD, KnownScale, RunSpread
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit

A, B, C_MID, R_0 = 0.610, 1.92, 2542.0, 0.3
EVERY, SAMPLES = 500.0, 16_000
CELLS = [
    {"budget": 16_000.0, "run_to_run_sd": 0.0075, "seeds": 2},
    {"budget": 16_000.0, "run_to_run_sd": 0.0075, "seeds": 3},
    {"budget": 16_000.0, "run_to_run_sd": 0.015, "seeds": 3},
]
NUM_VARIANTS, NUM_DIFFERENT = 5, 3
NUM_SWEEPS = 40
QUESTIONS: tuple[str, ...] = ("level", "ceiling", "compute")


def main(num_sweeps: int = NUM_SWEEPS) -> None:
    results = []
    for number, cell in enumerate(CELLS):
        results.append(cell | measured(number, num_sweeps=num_sweeps, **cell))
        print(json.dumps(results[-1], indent=1), flush=True)
    settings = {"every": EVERY, "samples": SAMPLES, "num_sweeps": num_sweeps, "num_pairs": num_sweeps * NUM_DIFFERENT}
    if num_sweeps == NUM_SWEEPS:
        write_record("design_power", {"settings": settings | {"seed": SEED}, "results": results})


def measured(number: int, *, budget: float, run_to_run_sd: float, seeds: int, num_sweeps: int) -> dict[str, Any]:
    """By question: what is foretold, and what sweeps find of it."""
    compute = np.arange(0, budget + 1, EVERY)
    found: dict[str, Any] = {}
    for question, sight in foretold(compute, run_to_run_sd, seeds).items():
        if sight.seen is None:
            found[question] = {"seen": None}
            continue
        rng = np.random.default_rng([SEED, number, QUESTIONS.index(question)])
        comparisons = [
            sweep(rng, compute, question, sight.seen, run_to_run_sd=run_to_run_sd, seeds=seeds)
            for _ in range(num_sweeps)
        ]
        lines = [line for one in comparisons for line in one.variants if line.name.startswith("other")]
        half_widths = [width for line in lines if (width := half_width(question, line)) is not None]
        found[question] = {
            "seen": round(sight.seen, 4),
            "power": round(float(np.mean([is_called(question, line) for line in lines])), 3),
            "half_width_foretold": None if sight.half_width is None else round(sight.half_width, 4),
            "half_width": round(float(np.median(half_widths)), 4),
            "open_foretold": round(sight.open, 3),
            "open": round(1 - len(half_widths) / len(lines), 3),
        }
    return found


def foretold(compute: np.ndarray, run_to_run_sd: float, seeds: int) -> dict[str, Sight]:
    """What `platform design` says; of compute in ln."""
    tau = run_to_run_sd
    known = KnownScale(
        law=law,
        run_sd=PAPER_RUN_SD,
        autocorrelation=PAPER_AUTOCORRELATION,
        prompts=1000,
        sampling_share=1.0,
        # A run whose A lies off by some lies off by less on its way there.
        spread=RunSpread(level=tau * reached(compute), ceiling=tau, compute=None, freedom=0),
    )
    sizes = Sizes(num_variants=NUM_VARIANTS, num_seeds=seeds)
    return sights(SimulatedRuns(known=known, compute=compute, samples=SAMPLES, settings=FitSettings()), sizes)


def law(compute: np.ndarray) -> np.ndarray:
    """ScaleRL eq. 1."""
    with np.errstate(divide="ignore"):
        return R_0 + (A - R_0) / (1 + (C_MID / np.asarray(compute, dtype=float)) ** B)


def sweep(
    rng: np.random.Generator,
    compute: np.ndarray,
    question: str,
    difference: float,
    *,
    run_to_run_sd: float,
    seeds: int,
) -> Comparison:
    """The comparison of a reference, one variant equal to it and three that differ by so much."""
    names = ["reference", *(f"other {n}" for n in range(NUM_DIFFERENT)), "equal"]
    fits: dict[str, list[Fit]] = {}
    for name in names:
        differs = difference if name.startswith("other") else 0.0
        lowered = {"level": differs / reached(compute), "ceiling": differs, "compute": 0.0}[question]
        for seed in range(seeds):
            own = A - lowered + run_to_run_sd * rng.standard_normal()
            C_mid = C_MID * (np.exp(differs) if question == "compute" else 1.0)
            score = simulate(compute, A=own, B=B, C_mid=C_mid, R_0=R_0, rho=PAPER_AUTOCORRELATION, rng=rng)
            samples = np.full(compute.size, SAMPLES)
            curve = Curve(name="run", compute=compute, score=score, samples=samples, start=f"seed {seed}")
            fits.setdefault(name, []).append(fit_curve(curve))
    return compare(fits, dict.fromkeys(fits, 1.0), "reference")


def reached(compute: np.ndarray) -> float:
    """How much of the way from R_0 to A the mean over the last third of the budget is."""
    late = np.linspace(2 / 3 * compute[-1], compute[-1], 1001)
    return float(np.mean((law(late) - R_0) / (A - R_0)))


def is_called(question: str, line: VariantResult) -> bool:
    """Whether the verdict is the right one."""
    answer = line.answers[question]
    return answer.differs and answer.verdict != answer.question.better


def half_width(question: str, line: VariantResult) -> float | None:
    """Of the interval; of compute in ln. None where an end is missing."""
    answer = line.answers[question]
    half_width = answer.question.half_width(answer.lo, answer.hi)
    return half_width if np.isfinite(half_width) else None


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
