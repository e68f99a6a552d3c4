"""How often equal variants are called different, by the weight that the common spread has in a variant's own.

    python benchmarks/moderated_spread.py       # three minutes; tables of normal numbers, through `run_to_run`

A table has a level for every variant and seed, sqrt(shared) u_seed + sqrt(1 - shared) e. The first variant is the
reference; it is sound, or one of its runs is `low` by 4 standard deviations, or its e are twice as large (`noisy`).
`wrong` is the share of tables in which the second variant, which is equal, differs from the reference at 95 %; `seen`
the share if it is better by 2.5 standard deviations of e. Writes `results/moderated_spread.json`.
"""

from itertools import product
from typing import Any

import numpy as np
from record import write_record

from ablations.answers import run_to_run as rule
from ablations.answers.interval import TAIL
from ablations.answers.repeats import Repeats
from ablations.answers.student import quantile

TABLES = 1000
PRIORS = (2.0, 3.0, 4.0)
SIZES = ((9, 2), (9, 3), (9, 5), (4, 3))
SHARED = (0.0, 0.6)
REFERENCES = ("sound", "low", "noisy")


def main() -> None:
    cells = []
    for (variants, seeds), shared, reference in product(SIZES, SHARED, REFERENCES):
        cell: dict[str, Any] = {"variants": variants, "seeds": seeds, "shared": shared, "reference": reference}
        for prior in PRIORS:
            cell[f"prior {prior:g}"] = rates(variants, seeds, shared, reference, prior)
        print(cell, flush=True)
        cells.append(cell)
    write_record("moderated_spread", {"settings": {"tables": TABLES}, "cells": cells})


def rates(variants: int, seeds: int, shared: float, reference: str, prior: float) -> dict[str, float]:
    rule.PRIOR_FREEDOM = prior
    rng = np.random.default_rng([variants, seeds, round(10 * shared), REFERENCES.index(reference)])
    rest = np.sqrt(1 - shared)
    wrong = seen = 0
    for _ in range(TABLES):
        e = rng.standard_normal((variants, seeds))
        if reference == "noisy":
            e[0] *= 2
        level_VS = np.sqrt(shared) * rng.standard_normal(seeds) + rest * e
        if reference == "low":
            level_VS[0, 0] -= 4
        wrong += differs(level_VS)
        level_VS[1] += 2.5 * rest
        seen += differs(level_VS)
    return {"wrong": wrong / TABLES, "seen": seen / TABLES}


def differs(level_VS: np.ndarray) -> bool:
    starts = [str(seed) for seed in range(level_VS.shape[1])]
    runs = [Repeats.of(row, [0.0] * len(starts), starts) for row in level_VS.tolist()]
    found = rule.run_to_run(runs).of_difference(runs[1], runs[0])
    return not quantile([found], TAIL) < 0 < quantile([found], 1 - TAIL)


if __name__ == "__main__":
    main()
