"""What a held-out pass rate errs by, and what knowing it by prompt is worth.

    platform sweep sweeps/off_policy.yaml --scale smoke --home HOME
    PYTHONPATH=platform:trainer python benchmarks/evaluation_noise.py HOME off_policy@smoke    # ten minutes on one core

Repeats: the trained weights of every run are evaluated again and again, with other random numbers each time and the
same ones for runs of one seed, as their evaluations had. The standard deviation of these pass rates is the truth;
beside it stand the estimate from counts by prompt and p (1 - p) / n. Of pairs of runs, the correlation of their errors
is what pairing by random numbers could take out, where they have the same: runs of one seed. The standard deviation of
their difference over other prompts is given with prompts drawn for each run, and with the same prompts for both.
Writes `results/evaluation_noise.json`; what fits gain by it is measured by `counted_answers`.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import write_record

from ablations.fit.prompt_noise import answer_variance, prompt_variance
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.generator.generator import Generator
from scalerl.generator.request import Finished, Request
from scalerl.run.meter import make_meter
from scalerl.run.run_folder import RunFolder

NUM_REPEATS = 600
FIRST_INDEX = 10_000
"""Beyond the number of any evaluation of the run, so that its random numbers are new."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Decodes what an evaluation asks for."""

    generator: Generator

    def sample(self, requests: list[Request]) -> list[Finished]:
        self.generator.submit(requests)
        finished: list[Finished] = []
        while self.generator.busy:
            finished += self.generator.step()[0]
        return finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("sweep")
    given = parser.parse_args()
    torch.set_num_threads(1)
    plan = json.loads((given.home / "sweeps" / given.sweep / "plan.json").read_text())
    counts = {
        (variant["name"], run["seed"]): repeats(RunFolder(given.home / "runs" / run["id"]))
        for variant in plan["variants"]
        for run in variant["runs"]
    }
    report = {
        "settings": {
            "sweep": given.sweep,
            "repeats": NUM_REPEATS,
        },
        "repeats": [{"variant": name, "seed": seed, **noise(found)} for (name, seed), found in counts.items()],
        "pairs": pairs(counts),
    }
    print(json.dumps(report, indent=1))
    write_record("evaluation_noise", report)


def repeats(folder: RunFolder) -> list[PromptCounts]:
    """Evaluations of the weights that a run has ended with."""
    recipe, seed = folder.read_resolved()
    generator, meter = make_meter(recipe, seed, folder.model)
    found = []
    for index in range(NUM_REPEATS):
        (row,) = meter.held_out.measure(Sampled(generator=generator), FIRST_INDEX + index)
        found.append(PromptCounts.from_text(row["prompt_counts"]))
    return found


def noise(found: list[PromptCounts]) -> dict[str, float]:
    """Standard deviations of a pass rate: measured, estimated, assumed without counts; and over other prompts."""
    rates, num_answers = rates_of(found), int(found[0].judged.sum())
    p = float(rates.mean())
    return {
        "pass_rate": round(p, 4),
        "sd_measured": figure(rates.std(ddof=1)),
        "sd_by_counts": figure(np.mean([answer_variance(one.right, one.judged) for one in found]) ** 0.5),
        "sd_by_samples": figure((p * (1 - p) / num_answers) ** 0.5),
        "sd_over_prompts": figure(np.mean([prompt_variance(one.right, one.judged) for one in found]) ** 0.5),
    }


def pairs(counts: Mapping[tuple[str, int], list[PromptCounts]]) -> dict[str, Any]:
    """Of two variants with one seed, and of two seeds of one variant, whose evaluations have other random numbers."""
    found: dict[str, list[dict[str, float]]] = {"of_one_seed": [], "of_one_variant": []}
    for ((name, seed), one), ((other_name, other_seed), other) in combinations(counts.items(), 2):
        if seed == other_seed:
            found["of_one_seed"].append(pair(one, other))
        elif name == other_name:
            found["of_one_variant"].append(pair(one, other))
    return {"standard_error_of_a_correlation": round(NUM_REPEATS**-0.5, 3)} | found


def pair(found: list[PromptCounts], other: list[PromptCounts]) -> dict[str, float]:
    """Their errors, evaluation by evaluation, and the difference of their pass rates over other prompts."""
    p, q = prompt_rates(found), prompt_rates(other)
    return {
        "correlation_of_errors": round(float(np.corrcoef(rates_of(found), rates_of(other))[0, 1]), 3),
        "difference": figure(p.mean() - q.mean()),
        "sd_over_prompts_unpaired": figure(((p.var(ddof=1) + q.var(ddof=1)) / p.size) ** 0.5),
        "sd_over_prompts_paired": figure(((p - q).var(ddof=1) / p.size) ** 0.5),
    }


def rates_of(found: list[PromptCounts]) -> np.ndarray:
    """Pass rates, shape (num_evaluations,)."""
    return np.array([one.right.sum() / one.judged.sum() for one in found])


def prompt_rates(found: list[PromptCounts]) -> np.ndarray:
    """Pass rate of each prompt over all evaluations, shape (num_prompts,)."""
    return np.sum([one.right for one in found], axis=0) / np.sum([one.judged for one in found], axis=0)


def figure(value: Any) -> float:
    """With three digits."""
    return float(f"{float(value):.3g}")


if __name__ == "__main__":
    main()
