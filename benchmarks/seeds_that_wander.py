"""What judging the rise of seeds together brings, and what it costs: equal variants whose readings are noisy.

    PYTHONPATH=platform:trainer python benchmarks/seeds_that_wander.py        # some minutes on one core

Two equal variants of three seeds rise from .3 by .15 with B 1.5; twelve readings, noise AR(1) .3, computes to C_mid .1
apart in ln. Of the compute ratio: in how many pairs it has an interval if every seed must rise by itself, and if the
seeds rise together; how many of these intervals hold the truth, 1; and how many verdicts say "differs". Writes
`results/seeds_that_wander.json`.
"""

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from record import write_record
from simulation import SEED

from ablations.answers.answer import Answer
from ablations.answers.compare import compare
from ablations.answers.rise import rise_together
from ablations.answers.simulated_runs import autoregressive
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

COMPUTE = np.arange(13) * 100.0
R_0, RISE, B, C_MID, SPREAD, RHO = 0.3, 0.15, 1.5, 300.0, 0.1, 0.3
SDS, PAIRS, SEEDS, SAMPLES = (0.02, 0.025, 0.03), 30, 3, 400.0


def main() -> None:
    cells = [measure(sd) for sd in SDS]
    write_record("seeds_that_wander", {"pairs": PAIRS, "seeds": SEEDS, "cells": cells})


def measure(sd: float) -> dict[str, Any]:
    """The shares of one size of noise, under both rules."""
    rng = np.random.default_rng([SEED, round(1e4 * sd)])
    pairs = [
        {name: [run(rng, sd, seed) for seed in range(SEEDS)] for name in ("reference", "equal")} for _ in range(PAIRS)
    ]
    flat = sum(not fit.rises for pair in pairs for fits in pair.values() for fit in fits)
    cell = {"sd": sd, "runs that do not rise alone": flat, "runs": 2 * SEEDS * PAIRS}
    for name, rule in (("each alone", each_alone), ("together", rise_together)):
        found = [ratio(pair, rule) for pair in pairs]
        told = [one for one in found if one.lo is not None or one.hi is not None]
        held = sum((one.lo or 0.0) <= 1.0 <= (one.hi or np.inf) for one in told)
        cell[name] = {"answered": len(told), "held": held, "differs": sum(one.differs for one in told)}
    print(cell, flush=True)
    return cell


def each_alone(fits: Sequence[Fit]) -> bool:
    """The rule before: one seed that does not rise takes its variant's answers away."""
    return all(fit.rises for fit in fits)


def ratio(pair: dict[str, list[Fit]], rule: Callable[[Sequence[Fit]], bool]) -> Answer:
    """The answer on compute of the pair under a rule."""
    with patch.multiple("ablations.answers.differences", rise_together=rule):
        return compare(pair, dict.fromkeys(pair, 1.0), "reference").variants[1].answers["compute"]


def run(rng: np.random.Generator, sd: float, seed: int) -> Fit:
    """A run whose C_mid differs a little from that of its siblings."""
    own = C_MID * np.exp(SPREAD * rng.standard_normal())
    law = R_0 + RISE / (1 + (np.maximum(COMPUTE, 1e-9) / own) ** -B)
    score = np.clip(law + sd * autoregressive(rng.standard_normal(COMPUTE.size), RHO), 0, 1)
    samples = np.full(COMPUTE.size, SAMPLES)
    return fit_curve(Curve(name="run", compute=COMPUTE, score=score, samples=samples, start=f"seed {seed}"))


if __name__ == "__main__":
    main()
