"""What stop rules save and what they do to the answers of a sweep, over simulated studies with known laws.

    OMP_NUM_THREADS=1 python benchmarks/stopping_rule.py --studies 40        # three minutes of processor time

Rules: those of `sweeps/early_stop.yaml`. A study has a reference that follows one of the published fits with a budget
of 16,000 GPU-hours (ScaleRL table 1, arXiv 2510.13786), two variants equal to it, one with a ceiling .03 lower and one
that needs 1.6 times the compute; two seeds each, runs of one recipe .0075 apart in A, an evaluation every 1,000
GPU-hours, noise of `simulation.py`, white in every other study. All runs train in step. After each evaluation the
readings so far are fitted and judged as a sweep does. In the end the study is compared twice: as it was stopped, and
with every run trained to the budget. Baseline: the second. Biases are means of estimate less truth; that of the ratio
is of its logarithm. A level is also set against the truth at the budget, which a stopped run does not reach. Writes
`results/stopping_rule.json`.
"""

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NOISES, NUM_SAMPLES, SEED, START_LEVELS, TRUTHS, simulate

from ablations.answers.compare import VariantResult, compare
from ablations.answers.differences import common_target
from ablations.answers.level import LAST_SHARE
from ablations.answers.questions import LEVEL
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.options import MIN_READINGS
from ablations.fit.result import Fit
from ablations.steering.stopping import StopReason, stop_reason
from ablations.study.sweep import Stop, load_sweep

SWEEP = Path(__file__).parents[1] / "sweeps" / "early_stop.yaml"
BUDGET = 16_000.0
EVERY = 1_000.0
NUM_SEEDS = 2
RUN_TO_RUN_SD = 0.0075
LOWER = 0.03
SLOWER = 1.6
REFERENCE = "reference"
LAWS = [(A, B, C_mid) for _, C_mid, B, A, _, budget in TRUTHS if budget == BUDGET]
KINDS = {"equal": "equal", "also equal": "equal", "lower": "lower", "slower": "slower"}


@dataclass(frozen=True, kw_only=True)
class Law:
    """The law of a recipe: `Law(A=0.61, B=1.92, C_mid=2542.0, R_0=0.3)`."""

    A: float
    B: float
    C_mid: float
    R_0: float

    def at(self, compute: np.ndarray | float) -> np.ndarray:
        """R of ScaleRL eq. 1."""
        return self.R_0 + (self.A - self.R_0) / (1 + (self.C_mid / np.asarray(compute)) ** self.B)

    def reaches(self, score: float) -> float:
        """Compute at which R is `score`."""
        return self.C_mid * ((score - self.R_0) / (self.A - score)) ** (1 / self.B)

    def level(self, compute: float) -> float:
        """Mean R over the last third of `compute`."""
        return float(np.mean(self.at(np.linspace((1 - LAST_SHARE) * compute, compute, 201))))


def main() -> None:
    parser = argparse.ArgumentParser(description="What stop rules save and what they do to the answers of a sweep.")
    parser.add_argument("--studies", type=int, default=40)
    num_studies = parser.parse_args().studies
    stop = load_sweep(SWEEP).stop
    assert stop is not None
    began = time.process_time()
    studies = [study(number, stop) for number in range(num_studies)]
    found = {"processor_seconds": round(time.process_time() - began), **totals(studies)}
    print(json.dumps(found, indent=1))
    settings = {"stop": stop.model_dump(), "studies": num_studies, "seeds": NUM_SEEDS, "run_to_run_sd": RUN_TO_RUN_SD}
    write_record("stopping_rule", {"settings": settings | {"every_gpu_hours": EVERY, "seed": SEED}, **found})


def study(number: int, stop: Stop) -> dict[str, Any]:
    """The runs of one study, where each was ended and why, and both comparisons against the truth."""
    rng = np.random.default_rng([SEED, number])
    A, B, C_mid = LAWS[number % len(LAWS)]
    R_0, rho = START_LEVELS[number % len(START_LEVELS)], list(NOISES.values())[number % 2]
    reference = Law(A=A, B=B, C_mid=C_mid, R_0=R_0)
    slower, lower = Law(A=A, B=B, C_mid=SLOWER * C_mid, R_0=R_0), Law(A=A - LOWER, B=B, C_mid=C_mid, R_0=R_0)
    laws = {REFERENCE: reference, "equal": reference, "also equal": reference, "lower": lower, "slower": slower}
    curves = {name: [curve(law, seed, rho, rng) for seed in range(NUM_SEEDS)] for name, law in laws.items()}
    stopped, reasons = follow(curves, stop)
    full = {name: [fitted(one, one.compute.size) for one in of_name] for name, of_name in curves.items()}
    return {
        "runs": [
            {
                "kind": KINDS[name],
                "rule": reason.rule if reason else None,
                "spent": float(fit.curve.compute[-1]) / BUDGET,
                "forgone": float(laws[name].at(BUDGET) - laws[name].at(fit.curve.compute[-1])),
            }
            for name in KINDS
            for fit, reason in zip(stopped[name], reasons[name], strict=True)
        ],
        "answers": [
            {"kind": KINDS[line.name], "stopped": is_stopped} | answers(line, fits, laws)
            for is_stopped, fits in ((True, stopped), (False, full))
            for line in compare(fits, dict.fromkeys(fits, 1.0), REFERENCE).variants[1:]
        ],
    }


def curve(law: Law, seed: int, rho: float, rng: np.random.Generator) -> Curve:
    """The readings of one run to the budget."""
    compute = np.arange(0.0, BUDGET + 1, EVERY)
    own = law.A + RUN_TO_RUN_SD * rng.standard_normal()
    score = simulate(compute, A=own, B=law.B, C_mid=law.C_mid, R_0=law.R_0, rho=rho, rng=rng)
    samples = np.full(compute.size, float(NUM_SAMPLES))
    return Curve(name="run", compute=compute, score=score, samples=samples, start=str(seed))


def fitted(curve: Curve, size: int) -> Fit:
    return fit_curve(curve.first(size), fit_from=FIT_FROM_GPU_HOURS)


def follow(
    curves: Mapping[str, Sequence[Curve]], stop: Stop
) -> tuple[dict[str, list[Fit]], dict[str, list[StopReason | None]]]:
    """The last fit of every run, and what ended it; None for the reference and for a run that reached the budget."""
    first = int((curves[REFERENCE][0].compute <= FIT_FROM_GPU_HOURS).sum()) + MIN_READINGS
    newest: dict[str, list[list[Fit]]] = {name: [[] for _ in of_name] for name, of_name in curves.items()}
    ended: dict[str, list[StopReason | None]] = {name: [None] * len(of_name) for name, of_name in curves.items()}
    for size in range(first, curves[REFERENCE][0].compute.size + 1):
        for name, of_name in curves.items():
            for seed, one in enumerate(of_name):
                if ended[name][seed] is None:
                    newest[name][seed].append(fitted(one, size))
        now = float(curves[REFERENCE][0].compute[size - 1])
        last = {name: [fits[-1] for fits in of_name] for name, of_name in newest.items()}
        spread = LEVEL.spread_of(last.values(), last[REFERENCE])
        for name in KINDS if now < BUDGET else ():
            for seed, fits in enumerate(newest[name]):
                reason = stop_reason(
                    stop,
                    fits=fits[-2:],
                    budget=BUDGET,
                    truncation=None,
                    reference_fits=last[REFERENCE],
                    spread=spread,
                )
                if ended[name][seed] is None and reason and reason.ends_run:
                    ended[name][seed] = reason
    return {name: [fits[-1] for fits in of_name] for name, of_name in newest.items()}, ended


def answers(line: VariantResult, fits: Mapping[str, Sequence[Fit]], laws: Mapping[str, Law]) -> dict[str, Any]:
    """Estimate less truth for each question, None without an estimate; and which verdicts say "differs"."""
    ours, theirs = laws[line.name], laws[REFERENCE]
    found = {name: answer.estimate for name, answer in line.answers.items()}

    def level(compute: float) -> float:
        return ours.level(compute) - theirs.level(compute)

    target = common_target([fits[line.name], fits[REFERENCE]])
    ratio = target and found["compute"] and math.log(found["compute"] * theirs.reaches(target))
    return {
        "level": less(found["level"], level(line.level_compute)),
        "level, of the budget": less(found["level"], level(BUDGET)),
        "A": None if line.asymptote.A is None else line.asymptote.A - ours.A,
        "ceiling": less(found["ceiling"], ours.A - theirs.A),
        "log ratio": less(ratio, math.log(ours.reaches(target)) if target else 0.0),
        **{f"{name} differs": answer.differs for name, answer in line.answers.items()},
    }


def less(estimate: float | None, truth: float) -> float | None:
    return None if estimate is None else estimate - truth


def totals(studies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By kind of variant: what was ended, saved and forgone, and what each comparison says."""
    return {kind: of_kind(kind, studies) for kind in dict.fromkeys(KINDS.values())} | {
        "compute saved, the reference included": round(
            np.mean([1 - run["spent"] for one in studies for run in one["runs"]]) * len(KINDS) / (len(KINDS) + 1), 4
        )
    }


def of_kind(kind: str, studies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    runs = [run for one in studies for run in one["runs"] if run["kind"] == kind]
    found: dict[str, Any] = {
        "runs": len(runs),
        "ended by": dict(Counter(run["rule"] for run in runs if run["rule"])),
        "compute saved": round(1 - float(np.mean([run["spent"] for run in runs])), 4),
        "gain forgone over .01": round(float(np.mean([run["forgone"] > 0.01 for run in runs])), 4),
    }
    for name, is_stopped in (("stopped", True), ("trained to the budget", False)):
        said = [one for of in studies for one in of["answers"] if (one["kind"], one["stopped"]) == (kind, is_stopped)]
        found[name] = {}
        for question in (key for key in said[0] if key not in ("kind", "stopped")):
            values = np.array([one[question] for one in said if one[question] is not None], dtype=float)
            error = float(values.std() / math.sqrt(values.size)) if values.size else math.nan
            found[name][question] = {
                "mean": round(float(values.mean()), 4) if values.size else None,
                "standard error": round(error, 4) if values.size else None,
                "of": int(values.size),
            }
    return found


if __name__ == "__main__":
    main()
