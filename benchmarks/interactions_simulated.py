"""How often an interaction of two changes is found or invented, where the truth is known, and how often any could be.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/interactions_simulated.py [NUM_STUDIES]

A study trains a reference, changes and pairs of them: three changes with all three pairs, or ten changes with ten pairs
(`pairs: 10`). A level is its recipe's plus a deviation with a standard deviation of .012; in half of the cells half of
that variance is shared by the runs of one seed, which are known to begin alike. One pair does .03 more than its two
changes apart, or none does. Shares of studies:

    found          the interval of the pair excludes no interaction; joint: its interval corrected for all pairs does
    false          the interval of a pair without interaction excludes that
    joint_false    any corrected interval of a study without interactions does
    bound          what a two-sided test at 5 % finds if it knows the spread: the estimate's sd is 2 sigma / sqrt(n)
    bound_t        what Student's t finds if all runs have one spread, known from this study alone

Writes `results/interactions_simulated.json`.
"""

import json
import math
import sys
from itertools import combinations
from typing import Any

import numpy as np
from record import write_record
from scipy.stats import nct, norm, t
from simulation import SEED

from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import run_to_run
from ablations.answers.student import interval_of
from ablations.study.pairs import balanced_pairs

SD, SIZE = 0.012, 0.03
NUM_STUDIES = 2000
CELLS = ((3, 3, 3), (3, 3, 4), (10, 10, 3))
"""Changes, pairs and seeds."""


def main() -> None:
    num_studies = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_STUDIES
    cells = [
        measure(num_changes, num_pairs, num_seeds, shared, num_studies)
        for num_changes, num_pairs, num_seeds in CELLS
        for shared in (0.0, 0.5)
    ]
    print(json.dumps(cells, indent=1))
    if num_studies == NUM_STUDIES:
        settings = {"num_studies": num_studies, "sd": SD, "interaction": SIZE, "seed": SEED}
        write_record("interactions_simulated", {"settings": settings, "results": cells})


def measure(num_changes: int, num_pairs: int, num_seeds: int, shared: float, num_studies: int) -> dict[str, Any]:
    """Shares of studies in one cell, and their bounds; runs of a seed have this share of the variance in common."""
    changes = [f"{number}" for number in range(num_changes)]
    pairs = balanced_pairs(list(combinations(changes, 2)), num_pairs)
    rng = np.random.default_rng([SEED, num_changes, num_seeds, round(10 * shared)])
    with_one, without = (
        np.array([sides_of(rng, changes, pairs, num_seeds, shared, size) for _ in range(num_studies)])
        for size in (SIZE, 0.0)
    )
    own = SD * math.sqrt(1 - shared)
    sd, freedom = 2 * own / math.sqrt(num_seeds), (num_changes + num_pairs) * (num_seeds - 1)
    return {
        "changes": num_changes,
        "pairs": num_pairs,
        "seeds": num_seeds,
        "shared": shared,
        "found": float(with_one[:, 0, 0].mean()),
        "false": float(without[:, :, 0].mean()),
        "joint_found": float(with_one[:, 0, 1].mean()),
        "joint_false": float(without[:, :, 1].any(axis=1).mean()),
        "bound": float(norm.sf(norm.isf(0.025) - SIZE / sd) + norm.cdf(-norm.isf(0.025) - SIZE / sd)),
        "bound_t": power(SIZE / sd, freedom),
    }


def sides_of(
    rng: np.random.Generator,
    changes: list[str],
    pairs: list[tuple[str, str]],
    num_seeds: int,
    shared: float,
    size: float,
) -> np.ndarray:
    """Whether the interval, and the corrected one, of each pair's interaction excludes 0, shape (num_pairs, 2).

    The first pair has an interaction of this size.
    """
    starts = [f"{seed}" for seed in range(num_seeds)]
    own, of_seed = SD * math.sqrt(1 - shared), SD * math.sqrt(shared) * rng.standard_normal(num_seeds)
    means: dict[Any, float] = dict.fromkeys([(), *changes, *pairs], 0.5) | {pairs[0]: 0.5 + size}
    runs = {
        name: Repeats.of((mean + of_seed + own * rng.standard_normal(num_seeds)).tolist(), [0.0] * num_seeds, starts)
        for name, mean in means.items()
    }
    spread = run_to_run(list(runs.values()))
    found = []
    for first, second in pairs:
        sides = [(1.0, runs[first, second]), (-1.0, runs[first]), (-1.0, runs[second]), (1.0, runs[()])]
        contrast = spread.of_contrast(sides)
        interval = interval_of([contrast], contrast.estimate, comparisons=len(pairs))
        found.append((excludes(interval.lo, interval.hi), excludes(interval.joint_lo, interval.joint_hi)))
    return np.array(found)


def excludes(lo: float | None, hi: float | None) -> bool:
    """True if a bounded interval excludes no interaction."""
    assert lo is not None
    assert hi is not None
    return not lo <= 0 <= hi


def power(noncentrality: float, freedom: int) -> float:
    """Power of Student's two-sided test at 5 %."""
    least = t(freedom).isf(0.025)
    return float(nct(freedom, noncentrality).sf(least) + nct(freedom, noncentrality).cdf(-least))


if __name__ == "__main__":
    main()
