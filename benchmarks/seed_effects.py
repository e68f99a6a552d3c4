"""How much of the difference between runs of one recipe is their seed's, which other recipes with that seed share.

    python benchmarks/seed_effects.py           # reads docs/results/paper/*.csv.gz; a second

All runs of scale `bench_november` with one seed begin with the same warm start and draw the same prompts. The level of
a run, the mean of its readings in the last third of the compute, is taken apart over variants v and seeds s:

    level_vs = variant_v + seed_s + rest_vs

`within_sd` is the deviation between runs of one variant, `rest_sd` what is left of it where variants are compared seed
by seed. Once after one unit of compute, and once after four, of the variants that were trained for so long. Variants
with the same levels (a curriculum by length is one by difficulty in this task) count once. Writes
`results/seed_effects.json`.
"""

import csv
import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import write_record
from scipy.stats import f

CURVES = Path(__file__).parents[1] / "docs/results/paper"
UNIT = 200.0
"""Modelled GPU-hours of scale `bench_november`."""
UNITS = (1, 4)


def main() -> None:
    found = {f"after {units} units": effects(levels(units * UNIT)) for units in UNITS}
    write_record("seed_effects", found)
    print(found)


def effects(level_VS: NDArray[np.float64]) -> dict[str, Any]:
    """Standard deviations and the test whether seeds have an effect."""
    num_variants, num_seeds = level_VS.shape
    variant_V1, seed_1S = level_VS.mean(1, keepdims=True), level_VS.mean(0, keepdims=True)
    rest_VS = level_VS - variant_V1 - seed_1S + level_VS.mean()
    within = ((level_VS - variant_V1) ** 2).sum() / (num_variants * (num_seeds - 1))
    of_rest = (num_variants - 1) * (num_seeds - 1)
    rest = (rest_VS**2).sum() / of_rest
    of_seeds = num_variants * ((seed_1S - level_VS.mean()) ** 2).sum() / (num_seeds - 1)
    return {
        "num_variants": num_variants,
        "num_seeds": num_seeds,
        "within_sd": float(np.sqrt(within)),
        "rest_sd": float(np.sqrt(rest)),
        "seed_effects": (seed_1S - level_VS.mean()).ravel().tolist(),
        "F": float(of_seeds / rest),
        "p": float(f.sf(of_seeds / rest, num_seeds - 1, of_rest)),
    }


def levels(until: float) -> NDArray[np.float64]:
    """[V, S] of every variant whose seeds have all been trained for so long."""
    of_run: dict[str, tuple[int, float]] = {}
    by_variant: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sorted(CURVES.glob("*.csv.gz")):
        readings: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        seeds: dict[str, int] = {}
        for row in csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines()):
            readings[row["run"]].append((float(row["compute"]), float(row["score"])))
            by_variant[path.stem, row["curve"]].add(row["run"])
            seeds[row["run"]] = int(row["seed"])
        for run, points in readings.items():
            if points[-1][0] >= until:
                first_beyond = next(compute for compute, _ in points if compute >= until)
                late = [score for compute, score in points if 2 / 3 * until <= compute <= first_beyond]
                of_run[run] = seeds[run], float(np.mean(late))
    whole = [runs for runs in by_variant.values() if runs <= of_run.keys()]
    rows = {tuple(level for _, level in sorted(of_run[run] for run in runs)) for runs in whole}
    most = max(map(len, rows))
    return np.array(sorted(row for row in rows if len(row) == most))


if __name__ == "__main__":
    main()
