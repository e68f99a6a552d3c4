"""What the verdicts promise, and what they keep: equal variants called different, true differences found, intervals.

    PYTHONPATH=platform:trainer python benchmarks/verdict_truth.py [SD ...]       # 20 minutes for all four on one core

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 213 GPU-hours to 16k, fitted from 1.5k
on, noise as in `simulation.py`, white in every other sweep and AR(1) in the rest. Of nine variants the reference and
four others are equal, four have an A that is .03 higher. Runs of one recipe differ in A by a run-to-run sd, and in ln
C_mid by four times as much; a share of both comes from the seed, which runs of all variants have in common. The first
2, 3 and 5 seeds are compared, in sweeps of two and of nine variants; "any" is the share of sweeps of equal variants
with a corrected verdict that is false.

Then sweeps with one run that is unlike its siblings, three seeds, sd .012: a run of the reference or of another variant
that collapses, ends .06 lower, or has readings five times as noisy; the power is that for an A .06 higher.

Writes `results/verdict_truth.json`; cells of one sd alone are printed.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, simulate

from ablations.answers.compare import VariantResult, compare
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

A, B, C_MID, R_0 = 0.610, 1.92, 2542, 0.3
EVERY, BUDGET = 213, 16_000
SDS = (0.005, 0.012, 0.025, 0.06)
SHARED = (0.0, 0.6)
NUM_SEEDS = (2, 3, 5)
SPEED = 4.0
"""Standard deviation of ln C_mid over that of A."""
DIFFERENCE = 0.03
EQUAL, HIGHER = [f"equal {n}" for n in range(4)], [f"higher {n}" for n in range(4)]
ALSO_EQUAL = [f"equal {n}" for n in range(4, 8)]
NUM_SWEEPS = 25
ODD_SD, ODD_SEEDS, ODD_DIFFERENCE = 0.012, 3, 0.06
ODD = ("collapsed", "low", "noisy")
COMPUTE = np.arange(0, BUDGET + 1, EVERY, dtype=float)


def main() -> None:
    sds = tuple(float(one) for one in sys.argv[1:]) or SDS
    cells = []
    for sd in sds:
        for shared in SHARED:
            cells += measure(sd, shared)
            print(json.dumps(cells[-2 * len(NUM_SEEDS) :]), flush=True)
    if sds == SDS:
        odd = [unlike(kind, where) for kind in ODD for where in ("reference", ALSO_EQUAL[0])]
        print(json.dumps(odd), flush=True)
        pairs = NUM_SWEEPS * 2 * len(EQUAL)
        settings = {"difference": DIFFERENCE, "sweeps": NUM_SWEEPS, "equal_pairs": pairs, "speed": SPEED}
        write_record("verdict_truth", {"settings": settings | {"seed": SEED}, "cells": cells, "unlike": odd})


def measure(sd: float, shared: float) -> list[dict[str, Any]]:
    """The cells of one run-to-run sd and one shared share."""
    sweeps = [
        sweep(np.random.default_rng([SEED, round(1e6 * sd), round(10 * shared), number]), sd, shared, rho_of(number))
        for number in range(NUM_SWEEPS)
    ]
    return [
        {"sd": sd, "shared": shared, "variants": num_variants, "seeds": num_seeds}
        | shares(sweeps, num_variants, num_seeds)
        for num_variants in (2, 9)
        for num_seeds in NUM_SEEDS
    ]


def rho_of(number: int) -> float:
    """The autocorrelation of the noise of a sweep."""
    return list(NOISES.values())[number % len(NOISES)]


def shares(sweeps: Sequence[Mapping[str, Sequence[Fit]]], num_variants: int, num_seeds: int) -> dict[str, float]:
    """Shares of pairs called different and of intervals that hold the truth, by question."""
    calls: dict[str, list[float]] = {}
    for fits in sweeps:
        for lines in compared(fits, [*EQUAL, *HIGHER], num_variants, num_seeds):
            for line in lines:
                note(calls, line, fits)
        for lines in compared(fits, [*EQUAL, *ALSO_EQUAL], num_variants, num_seeds):
            for line in lines:
                if line.name in ALSO_EQUAL:  # the others are noted above
                    note(calls, line, fits)
            for name in lines[0].answers:
                joint = [line.answers[name] for line in lines]
                false = any(one.joint_verdict in (one.question.higher, one.question.lower) for one in joint)
                calls.setdefault(f"any: {name}", []).append(false)
    return {name: round(float(np.mean(of_name)), 3) for name, of_name in sorted(calls.items())}


def compared(
    fits: Mapping[str, Sequence[Fit]], names: Sequence[str], num_variants: int, num_seeds: int
) -> Iterator[Sequence[VariantResult]]:
    """Comparisons with the reference: of every name alone, or of all together."""
    for some in [[name] for name in names] if num_variants == 2 else [names]:
        chosen = {name: fits[name][:num_seeds] for name in ("reference", *some)}
        yield compare(chosen, dict.fromkeys(chosen, 1.0), "reference").variants[1:]


def note(calls: dict[str, list[float]], line: VariantResult, fits: Mapping[str, Sequence[Fit]]) -> None:
    kind = line.name.split()[0]
    for name, answer in line.answers.items():
        wanted = answer.differs if kind == "equal" else answer.verdict == answer.question.better
        calls.setdefault(f"{kind}: {name}", []).append(wanted)
        truth = {"ceiling": DIFFERENCE * (kind == "higher")}.get(name)
        truth = answer.question.no_difference if truth is None and kind == "equal" else truth
        if truth is not None and answer.lo is not None and answer.hi is not None:
            calls.setdefault(f"held: {name}", []).append(answer.lo <= truth <= answer.hi)
    asymptote = line.asymptote
    own = A + DIFFERENCE * (kind == "higher")
    calls.setdefault("held: A", []).append(asymptote.lo <= own and (asymptote.hi is None or own <= asymptote.hi))
    calls.setdefault("bounded: A", []).append(asymptote.hi is not None)


def unlike(kind: str, where: str) -> dict[str, Any]:
    """Shares of equal and of better variants called different beside one run unlike its siblings."""
    calls: dict[str, list[float]] = {}
    for number in range(NUM_SWEEPS):
        rng = np.random.default_rng([SEED, ODD.index(kind), where == "reference", number])
        fits = sweep(rng, ODD_SD, 0.0, rho_of(number), num_seeds=ODD_SEEDS, difference=ODD_DIFFERENCE)
        fits[where] = [odd_run(rng, kind, rho_of(number)), *fits[where][1:]]
        names = [*EQUAL, *HIGHER[: 4 - (where != "reference")], *([] if where == "reference" else [where])]
        chosen = {name: fits[name] for name in ("reference", *names)}
        for line in compare(chosen, dict.fromkeys(chosen, 1.0), "reference").variants[1:]:
            if line.name == where:
                continue
            for name, answer in line.answers.items():
                is_equal = line.name.startswith("equal")
                wanted = answer.differs if is_equal else answer.verdict == answer.question.better
                calls.setdefault(f"{'equal' if is_equal else 'higher'}: {name}", []).append(wanted)
    return {"run": kind, "of": where} | {name: round(float(np.mean(those)), 3) for name, those in calls.items()}


def odd_run(rng: np.random.Generator, kind: str, rho: float) -> Fit:
    """A run of the reference's recipe that collapses, ends lower, or is noisy."""
    own = A + ODD_SD * rng.standard_normal() - ODD_DIFFERENCE * (kind == "low")
    score = simulate(COMPUTE, A=own, B=B, C_mid=C_MID, R_0=R_0, rho=rho, rng=rng)
    if kind == "noisy":
        score = np.clip(score + 0.02 * rng.standard_normal(score.size), 0, 1)
    if kind == "collapsed":
        late = np.clip((COMPUTE - 0.6 * BUDGET) / (0.2 * BUDGET), 0, 1)
        score = np.clip(score * (1 - 0.7 * late), 0, 1)
    return fitted(score)


def sweep(
    rng: np.random.Generator,
    sd: float,
    shared: float,
    rho: float,
    *,
    num_seeds: int = max(NUM_SEEDS),
    difference: float = DIFFERENCE,
) -> dict[str, list[Fit]]:
    """Fits of the runs of every variant."""
    of_seed = np.sqrt(shared) * rng.standard_normal((num_seeds, 2))
    fits: dict[str, list[Fit]] = {}
    for name in ("reference", *EQUAL, *HIGHER, *ALSO_EQUAL):
        for seed in range(num_seeds):
            high, slow = sd * (of_seed[seed] + np.sqrt(1 - shared) * rng.standard_normal(2))
            own = min(A + difference * (name in HIGHER) + high, 0.98)
            score = simulate(COMPUTE, A=own, B=B, C_mid=C_MID * np.exp(SPEED * slow), R_0=R_0, rho=rho, rng=rng)
            fits.setdefault(name, []).append(fitted(score, f"seed {seed}"))
    return fits


def fitted(score: np.ndarray, start: str = "seed 0") -> Fit:
    samples = np.full(score.size, NUM_SAMPLES)
    curve = Curve(name="run", compute=COMPUTE, score=score, samples=samples, start=start)
    return fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS)


if __name__ == "__main__":
    main()
