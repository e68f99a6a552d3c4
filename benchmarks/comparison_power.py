"""How often equal variants are called different, and how often a true difference is found, in sweeps of nine variants.

    PYTHONPATH=platform:trainer python benchmarks/comparison_power.py [SD]    # half an hour; one sd is printed alone

Truth: ScaleRL's fit (table 1, arXiv 2510.13786) from R_0 = 0.3, readings every 213 GPU-hours to 16k, fitted from
1.5k on. Of the nine variants the reference and four others are equal, four have an A that is .03 higher. Each run has
an A of its own, drawn about its variant's with a run-to-run sd that the comparison does not know. Noise as in
`simulation.py`, white in every other sweep and AR(1) in the rest. The first 1, 2, 3 and 5 seeds are compared; one seed
once more beside six runs of one recipe that another sweep has left in the home folder. Beside the verdicts: the
paper's own rule, a difference in A over 0.02. "any of eight" is the share of sweeps of nine equal variants with a
false verdict, plain and corrected for eight comparisons.

The pairs of a sweep share the reference and the run-to-run sd that is found, so that 200 pairs say less than 200
would; levels, which need no fit, are simulated by themselves as well, in 500 sweeps: a level with its run-to-run sd and
a sampling sd of .002. Writes `results/comparison_power.json`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, simulate

from ablations.answers.compare import VariantResult, compare
from ablations.answers.level import Level, level_difference, level_repeats
from ablations.answers.questions import LEVEL
from ablations.answers.run_to_run import NO_OTHERS, OtherSweeps, run_to_run
from ablations.findings.repeated_runs import says_of_group
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

A, B, C_MID, R_0 = 0.610, 1.92, 2542, 0.3
EVERY, BUDGET = 213, 16_000
RUN_TO_RUN_SDS = (0.003, 0.0075, 0.015, 0.03)
TRUE_DIFFERENCE = 0.03
EQUAL, HIGHER = [f"equal {n}" for n in range(4)], [f"higher {n}" for n in range(4)]
ALSO_EQUAL = [f"equal {n}" for n in range(4, 8)]
"""In the place of those that are higher, for sweeps in which all nine are equal."""
NUM_PILOT = 6
PILOT = "pilot"
"""A recipe of another sweep with so many seeds."""
CASES = [(1, False), (1, True), (2, False), (3, False), (5, False)]
"""Seeds, and whether another sweep of the scale is in the home folder."""
NUM_SWEEPS = 50
NUM_LEVEL_SWEEPS = 500
LEVEL_SD = 0.002
"""Of a level given its run: its finite samples."""


def main() -> None:
    if len(sys.argv) > 1:
        print(
            json.dumps([measure(float(sys.argv[1])), [levels(float(sys.argv[1]), *case) for case in CASES]], indent=1)
        )
        return
    results = []
    for run_to_run_sd in RUN_TO_RUN_SDS:
        results += measure(run_to_run_sd)
        print(json.dumps(results[-len(CASES) :], indent=1), flush=True)
    report = {
        "settings": {
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "true_difference": TRUE_DIFFERENCE,
            "num_sweeps": NUM_SWEEPS,
            "num_pairs": NUM_SWEEPS * len(EQUAL),
            "num_level_pairs": NUM_LEVEL_SWEEPS * len(EQUAL),
            "num_runs_of_other_sweeps": NUM_PILOT,
            "seed": SEED,
        },
        "results": results,
        "levels": [levels(sd, *case) for sd in RUN_TO_RUN_SDS for case in CASES],
    }
    write_record("comparison_power", report)


def measure(run_to_run_sd: float) -> list[dict[str, Any]]:
    """Shares of pairs called different, by number of seeds."""
    rng = np.random.default_rng([SEED, round(1e6 * run_to_run_sd)])
    rhos = list(NOISES.values())
    sweeps = [sweep(rng, rhos[number % len(rhos)], run_to_run_sd) for number in range(NUM_SWEEPS)]
    return [
        {"run_to_run_sd": run_to_run_sd, "seeds": num_seeds, "other_sweeps": has_others}
        | shares(sweeps, num_seeds, has_others)
        for num_seeds, has_others in CASES
    ]


def shares(sweeps: Sequence[Mapping[str, Sequence[Fit]]], num_seeds: int, has_others: bool) -> dict[str, float]:
    """Shares of the pairs that each verdict calls different, and of sweeps of equal variants with one of them."""
    calls: dict[str, list[float]] = {}
    for fits in sweeps:
        others = others_of(fits[PILOT]) if has_others else NO_OTHERS

        def compared(names: Sequence[str], fits=fits, others=others) -> Sequence[VariantResult]:
            some = {name: fits[name][:num_seeds] for name in ("reference", *names)}
            return compare(some, dict.fromkeys(some, 1.0), "reference", others).variants[1:]

        for line in compared([*EQUAL, *HIGHER]):
            for question, is_called in called(line).items():
                calls.setdefault(f"{line.name.split()[0]}: {question}", []).append(is_called)
        lines = [called(line) for line in compared([*EQUAL, *ALSO_EQUAL])]
        for question in lines[0]:
            calls.setdefault(f"any of eight: {question}", []).append(any(line[question] for line in lines))
    return {name: round(float(np.mean(of_name)), 4) for name, of_name in calls.items()}


def called(line: VariantResult) -> dict[str, bool]:
    """Whether each verdict says that a variant differs."""
    plain = {name: answer.differs for name, answer in line.answers.items()}
    joint = {
        f"{name}, corrected": answer.joint_verdict in (answer.question.higher, answer.question.lower)
        for name, answer in line.answers.items()
    }
    return plain | joint | {"paper's rule": line.paper_rule.startswith("ceiling")}


def others_of(pilot: Sequence[Fit]) -> OtherSweeps:
    """What the runs of another sweep say of how far runs of one recipe lie apart."""
    return OtherSweeps(says={spread: (found,) for spread, found in says_of_group(pilot).items()})


def levels(run_to_run_sd: float, num_seeds: int, has_others: bool) -> dict[str, Any]:
    """The same of sweeps of levels alone."""
    rng = np.random.default_rng([SEED, round(1e6 * run_to_run_sd), num_seeds + 10 * has_others])
    names = ["reference", *EQUAL, *HIGHER, *ALSO_EQUAL]
    truth = np.array([TRUE_DIFFERENCE * (name in HIGHER) for name in names])[:, None]
    sd = np.hypot(run_to_run_sd, LEVEL_SD)
    calls: dict[str, list[bool]] = {}
    for _ in range(NUM_LEVEL_SWEEPS):
        values = truth + sd * rng.standard_normal((truth.size, num_seeds))
        of_name = {name: levels_from(row) for name, row in zip(names, values, strict=True)}
        others = [level_repeats(levels_from(sd * rng.standard_normal(NUM_PILOT)))] if has_others else []
        for kind, compared in (("pairs", [*EQUAL, *HIGHER]), ("any of eight", [*EQUAL, *ALSO_EQUAL])):
            group = [of_name[name] for name in ("reference", *compared)]
            spread = run_to_run([level_repeats(one) for one in group] if num_seeds > 1 else [], others)
            found = {
                name: level_difference(of_name[name], of_name["reference"], spread, comparisons=len(compared))
                for name in compared
            }
            plain = {name: LEVEL.verdict(one).startswith("level") for name, one in found.items()}
            joint = {name: LEVEL.verdict(one.joint).startswith("level") for name, one in found.items()}
            if kind == "pairs":
                for name in compared:
                    calls.setdefault(f"{name.split()[0]}: level", []).append(plain[name])
                    calls.setdefault(f"{name.split()[0]}: level, corrected", []).append(joint[name])
            else:
                calls.setdefault(f"{kind}: level", []).append(any(plain.values()))
                calls.setdefault(f"{kind}: level, corrected", []).append(any(joint.values()))
    shares_of = {name: round(float(np.mean(those)), 4) for name, those in calls.items()}
    return {"run_to_run_sd": run_to_run_sd, "seeds": num_seeds, "other_sweeps": has_others} | shares_of


def levels_from(values: np.ndarray) -> list[Level]:
    """Levels with the sampling error that they were drawn with."""
    return [Level(value=float(value), variance=LEVEL_SD**2) for value in values]


def sweep(rng: np.random.Generator, rho: float, run_to_run_sd: float) -> dict[str, list[Fit]]:
    """Fits of the variants, as many seeds of each as the largest design has, and of the runs of another sweep."""
    compute = np.arange(0, BUDGET + 1, EVERY, dtype=float)
    fits: dict[str, list[Fit]] = {}
    for name in ("reference", *EQUAL, *HIGHER, *ALSO_EQUAL, PILOT):
        ceiling = A + TRUE_DIFFERENCE * (name in HIGHER)
        for _ in range(NUM_PILOT if name == PILOT else max(CASES)[0]):
            own = ceiling + run_to_run_sd * rng.standard_normal()
            score = simulate(compute, A=own, B=B, C_mid=C_MID, R_0=R_0, rho=rho, rng=rng)
            curve = Curve(name="run", compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES))
            fits.setdefault(name, []).append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
    return fits


if __name__ == "__main__":
    main()
