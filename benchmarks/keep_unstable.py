"""How often whole campaigns of `platform keep` err, by its own ledger and spread, also if some proposals scatter more.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/keep_unstable.py NUM_CAMPAIGNS SEED [--unstable]

Campaigns of 60 proposals that equal the best, at a run-to-run deviation of .012; with --unstable every fifth has .03.
`keep_simulated.py` has many more campaigns and other cells, but neither the ledger's order nor the F tests. Prints the
shares after every tenth campaign; a campaign takes four seconds.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ablations.findings.campaign import BEST_SO_FAR, Campaign, CampaignTerms, Candidate
from ablations.findings.fair_runs import NewRun
from ablations.home.ledger import Ledger

PROPOSALS, SD, UNSTABLE_SD = 60, 0.012, 0.03


class InMemory(Ledger):
    """A ledger without a file."""

    def add(self, known: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{"line": at, "at": 0.0, **line} for at, line in enumerate(lines, start=len(known) + 1)]


def campaign_of(rng: np.random.Generator, *, is_unstable: bool) -> tuple[int, int]:
    """Proposals kept, and proposals called worse, of one campaign without any effect."""
    ledger = InMemory(Path("nowhere"))
    terms = ledger.add([], [{"kind": "campaign", **asdict(CampaignTerms(proposals=PROPOSALS))}])
    campaign, worse = Campaign(name="null", ledger=ledger, lines=terms), 0

    def run(name: str, sd: float = SD) -> Candidate:
        return campaign.add(name, [NewRun(score=float(rng.normal(0.45, sd)))])

    run("start")
    for _ in range(3):
        run(BEST_SO_FAR)
    for number in range(PROPOSALS):
        name, sd = f"p{number}", UNSTABLE_SD if is_unstable and number % 5 == 0 else SD
        proposal = run(name, sd)
        while (step := campaign.decide(proposal)).word == "again":
            for _ in range(step.own_runs):
                run(name, sd)
            for _ in range(step.best_runs):
                run(BEST_SO_FAR)
        worse += step.word == "worse"
    return len(campaign.kept), worse


def main() -> None:
    num, seed = int(sys.argv[1]), int(sys.argv[2])
    rng, found = np.random.default_rng(seed), list[tuple[int, int]]()
    for done in range(1, num + 1):
        found.append(campaign_of(rng, is_unstable="--unstable" in sys.argv))
        if done % 10 == 0 or done == num:
            kept, worse = np.array(found).T
            print(
                f"{done} campaigns: {np.mean(kept <= 1):.3f} with at most one false keep; kept "
                f"{kept.mean() / PROPOSALS:.4f}, worse {worse.mean() / PROPOSALS:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
