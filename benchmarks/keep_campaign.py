"""A campaign of sixty proposals that really trains: what three ways to decide keep, and what it is worth.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/keep_campaign.py HOME [--budget .3] [--proposals 60]

A random proposer flips one of eight settings of the best so far at scale `smoke`. Which of them matter is known from a
factorial study before: 16 recipes of a 2^(8-4) design of resolution IV, eight seeds each, so that a main effect is a
difference of two means of 64 runs. Three campaigns see the same proposer, each with its own best:

    keep            `platform keep`, with a margin of one and a half run-to-run deviations of the factorial study
    best reading    one run; kept if it scores higher than every run so far
    mean of three   three runs of each; kept if the mean is higher

A score is the level of `ablations.answers.level`; every run has a seed of its own. At the end ten fresh seeds of each
last recipe and of the start tell what the changes are worth. One core, one run after the other in this process; runs,
levels and the ledger are kept in HOME, so the same command goes on where it was stopped. Writes
`results/keep_campaign.json`.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from record import write_record
from scipy.stats import t
from simulation import SEED

from ablations.answers.keep import Conclusion
from ablations.answers.level import level_of
from ablations.findings.campaign import BEST_SO_FAR, CampaignTerms, campaign_names, new_campaign, opened
from ablations.findings.fair_runs import NewRun
from ablations.fit.options import FitSettings
from ablations.home.home import Home
from ablations.pools.code_version import code_version
from ablations.readings.run_reading import read_log
from ablations.study.resolve import load_resolved
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train

SETTINGS: dict[str, tuple[str, str]] = {
    "optimiser.learning_rate": ("1e-4", "5e-4"),
    "batch.generations": ("8", "4"),
    "generation.temperature": ("1.0", "0.8"),
    "loss.type": ("cispo", "dapo"),
    "aggregation": ("prompt", "token"),
    "zero_variance": ("drop", "keep"),
    "optimiser.warmup_steps": ("10", "5"),
    "off_policy.k": ("8", "4"),
}
"""The start, and the other value."""
GENERATORS = ((1, 2, 3), (0, 2, 3), (0, 1, 2), (0, 1, 3))
"""Columns of the design whose product is each further column."""
SEEDS_OF_CELL, FRESH_SEEDS, SCALE = 8, 10, "smoke"
Choice = tuple[int, ...]
START: Choice = (0,) * len(SETTINGS)


@dataclass(kw_only=True)
class Trainer:
    """Trains runs of recipes, and remembers how often each was run."""

    home: Home
    budget: float
    used: dict[str, int] = field(default_factory=dict)
    """Runs so far by purpose."""

    def level(self, choice: Choice, seed: int) -> NewRun:
        """The level of a run, trained unless it is there."""
        changed = [f"{name}={values[at]}" for (name, values), at in zip(SETTINGS.items(), choice, strict=True)]
        recipe = load_resolved("scalerl", SCALE, changed)
        run_id, compute = recipe.identity(seed), self.budget * recipe.compute_unit_gpu_hours
        folder: RunFolder = self.home.run(run_id)
        if folder.read_status().state != "done":
            folder.create(recipe, seed)
            train(folder.path, budget_gpu_hours=compute, warm_starts=self.home.warm_starts, code_version=code_version())
        settings = FitSettings(fit_from=0.0, fit_to=compute)
        curve = read_log(folder, run_id, settings).curve
        assert curve is not None
        level = level_of(curve, float(curve.compute[-1]))
        assert level is not None
        print(f"{run_id} {choice} seed {seed}: {level.value:.4f}", flush=True)
        return NewRun(score=level.value, source=run_id, compute=compute, conditions={"scale": SCALE})

    def next(self, purpose: int, choice: Choice) -> NewRun:
        """A further run, with a seed that no other run has."""
        number = self.used[str(purpose)] = self.used.get(str(purpose), 0) + 1
        return self.level(choice, 100_000 * purpose + number)


def proposals(num: int) -> Iterator[tuple[int, int]]:
    """Number of each proposal, and the place of the setting that it flips."""
    rng = np.random.default_rng(SEED)
    return ((number, int(rng.integers(len(SETTINGS)))) for number in range(1, num + 1))


def flipped(choice: Choice, place: int) -> Choice:
    """The recipe with the other value of one setting."""
    return tuple(1 - one if at == place else one for at, one in enumerate(choice))


def factorial(trainer: Trainer) -> dict[str, Any]:
    """Main effects with 95 % intervals, and the run-to-run deviation."""
    half = np.array([[(cell >> bit) & 1 for bit in range(4)] for cell in range(16)]) * 2 - 1
    design = np.column_stack([half, *(half[:, list(columns)].prod(axis=1) for columns in GENERATORS)])
    seeds = [
        [trainer.level(tuple(((row + 1) // 2).tolist()), seed).score for seed in range(SEEDS_OF_CELL)] for row in design
    ]
    levels = np.array(seeds)
    freedom = levels.size - len(levels)
    sd = float(np.sqrt(((levels - levels.mean(1, keepdims=True)) ** 2).sum() / freedom))
    half_width = float(t.ppf(0.975, freedom)) * sd * 2 / np.sqrt(levels.size)
    effects = {name: float(design[:, at] @ levels.mean(1)) / 8 for at, name in enumerate(SETTINGS)}
    return {"sd": sd, "half_width": half_width, "effects": effects}


def by_keep(trainer: Trainer, num: int, margin: float) -> dict[str, Any]:
    """The campaign decided by `keep`; what its ledger holds is not run again."""
    name = "campaign"
    if name not in campaign_names(trainer.home):
        new_campaign(trainer.home, name, CampaignTerms(proposals=num, margin=margin, ceiling=1.0))
    best, words = START, dict[str, Conclusion]()
    with opened(trainer.home, name) as campaign:
        trainer.used["1"] = len(campaign.runs)
        for number in range(4 - (len(campaign.candidates["start"].runs) if campaign.candidates else 0)):
            campaign.add("start" if number == 0 else BEST_SO_FAR, [trainer.next(1, START)])
        for number, place in proposals(num):
            proposal, choice = f"p{number}", flipped(best, place)
            known = campaign.candidates.get(proposal)
            while known is None or known.decision is None:
                known = known or campaign.add(proposal, [], says=f"{list(SETTINGS)[place]}, the other value")
                step = campaign.decide(known)
                if step.word != "again":
                    break
                if step.own_runs:
                    campaign.add(proposal, [trainer.next(1, choice)])
                if step.best_runs:
                    campaign.add(BEST_SO_FAR, [trainer.next(1, best)])
            assert known.decision is not None
            words[proposal] = known.decision["word"]
            best = choice if words[proposal] == "keep" else best
        return {"best": best, "words": words, "runs": len(campaign.runs), "expected_false": campaign.expected_false}


def by_reading(trainer: Trainer, num: int) -> dict[str, Any]:
    """The campaign decided by one run each."""
    best, highest, kept = START, trainer.next(2, START).score, list[str]()
    for number, place in proposals(num):
        choice = flipped(best, place)
        if (score := trainer.next(2, choice).score) > highest:
            best, highest = choice, score
            kept.append(f"p{number}")
    return {"best": best, "kept": kept, "runs": num + 1}


def by_mean(trainer: Trainer, num: int) -> dict[str, Any]:
    """The campaign decided by the means of three runs."""

    def mean(choice: Choice) -> float:
        return float(np.mean([trainer.next(3, choice).score for _ in range(3)]))

    best, highest, kept = START, mean(START), list[str]()
    for number, place in proposals(num):
        choice = flipped(best, place)
        if (score := mean(choice)) > highest:
            best, highest = choice, score
            kept.append(f"p{number}")
    return {"best": best, "kept": kept, "runs": 3 * (num + 1)}


def worth(trainer: Trainer, found: Mapping[str, Any]) -> dict[str, Any]:
    """The level of each last recipe less that of the start, by ten fresh seeds of each."""
    start = [trainer.level(START, 900_000 + number).score for number in range(FRESH_SEEDS)]
    told = {}
    for name, one in found.items():
        own = [trainer.level(tuple(one["best"]), 910_000 + number).score for number in range(FRESH_SEEDS)]
        gain = float(np.mean(own) - np.mean(start))
        error = np.sqrt((np.var(own, ddof=1) + np.var(start, ddof=1)) / FRESH_SEEDS)
        half = float(t.ppf(0.975, 2 * FRESH_SEEDS - 2) * error)
        told[name] = {"gain": gain, "lo": gain - half, "hi": gain + half}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--proposals", type=int, default=60)
    given = parser.parse_args()
    trainer = Trainer(home=Home(given.home.absolute()), budget=given.budget)
    trainer.home.require_writable()
    known = factorial(trainer)
    print(json.dumps(known, indent=1), flush=True)
    found = {
        "keep": by_keep(trainer, given.proposals, 1.5 * known["sd"]),
        "best reading": by_reading(trainer, given.proposals),
        "mean of three": by_mean(trainer, given.proposals),
    }
    result = {"factorial": known, "campaigns": found, "worth": worth(trainer, found)}
    print(json.dumps(result, indent=1))
    settings = {"budget": given.budget, "proposals": given.proposals, "scale": SCALE, "values": SETTINGS, "seed": SEED}
    write_record("keep_campaign", {"settings": settings, "results": result})


if __name__ == "__main__":
    main()
