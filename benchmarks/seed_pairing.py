"""What a comparison seed by seed gains where seeds have an effect, and what it costs where they have none.

    PYTHONPATH=platform:trainer python benchmarks/seed_pairing.py                 # four minutes on one core

Levels are simulated by themselves, as in `comparison_power.py`: a variant's, a seed's with standard deviation omega
that all variants share, a run's own with tau, and a sampling sd of .002. Half of the variants beside the reference are
equal to it, the other half .03 higher. Each sweep is compared twice: by what its runs begin with, and as if nothing
were known of that. `wrong` is the share of equal pairs that are called different, `seen` that of the others that
are called higher, `width` the median of the intervals. Writes `results/seed_pairing.json`.

The log names a prior of omega without its half at 0 as well: the same with --no-spike.
"""

import json
import sys
from collections.abc import Sequence

import numpy as np
from record import write_record
from simulation import SEED

from ablations.answers import run_to_run as spreads
from ablations.answers.level import Level, level_difference, level_repeats
from ablations.answers.questions import LEVEL

TAUS = (0.0075, 0.015, 0.03)
SEED_EFFECTS = (0.0, 1.0, 2.0)
"""omega over tau."""
STUDIES = ((2, 2), (2, 3), (2, 5), (9, 2), (9, 3))
"""Variants, the reference among them, and seeds."""
TRUE_DIFFERENCE = 0.03
LEVEL_SD = 0.002
NUM_PAIRS = 800


def main() -> None:
    if "--no-spike" in sys.argv:
        spreads.NO_EFFECT = 1e-12
    found = [
        cell(num_variants, num_seeds, tau, effect)
        for num_variants, num_seeds in STUDIES
        for tau in TAUS
        for effect in SEED_EFFECTS
    ]
    print(json.dumps(found, indent=1))
    if "--no-spike" not in sys.argv:
        write_record("seed_pairing", {"settings": {"num_pairs": NUM_PAIRS, "seed": SEED}, "results": found})


def cell(num_variants: int, num_seeds: int, tau: float, effect: float) -> dict[str, float]:
    rng = np.random.default_rng([SEED, num_variants, num_seeds, round(1e6 * tau), round(10 * effect)])
    calls: dict[str, list[float]] = {}
    for sweep in range(NUM_PAIRS // (num_variants - 1)):
        is_higher = (np.arange(num_variants) + sweep) % 2 * (np.arange(num_variants) > 0)
        values = TRUE_DIFFERENCE * is_higher[:, None] + effect * tau * rng.standard_normal(num_seeds)
        values = values + np.hypot(tau, LEVEL_SD) * rng.standard_normal((num_variants, num_seeds))
        for name, starts in (("paired", [f"seed {s}" for s in range(num_seeds)]), ("unpaired", [""] * num_seeds)):
            of_variant = [levels_of(row, starts) for row in values]
            spread = spreads.run_to_run([level_repeats(levels) for levels in of_variant])
            for levels, higher in zip(of_variant[1:], is_higher[1:], strict=True):
                one = level_difference(levels, of_variant[0], spread)
                assert one.lo is not None
                assert one.hi is not None
                calls.setdefault(f"{name}, width", []).append(one.hi - one.lo)
                said = LEVEL.verdict(one) == "level up" if higher else LEVEL.verdict(one).startswith("level")
                calls.setdefault(f"{name}, {'seen' if higher else 'wrong'}", []).append(said)
    known = {"variants": num_variants, "seeds": num_seeds, "tau": tau, "omega": effect * tau}
    return known | {
        name: round(float((np.median if "width" in name else np.mean)(those)), 4) for name, those in calls.items()
    }


def levels_of(values: Sequence[float] | np.ndarray, starts: Sequence[str]) -> list[Level]:
    """With the sampling error that they were drawn with."""
    return [Level(value=float(y), variance=LEVEL_SD**2, start=start) for y, start in zip(values, starts, strict=True)]


if __name__ == "__main__":
    main()
