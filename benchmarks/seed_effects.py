"""How much of the difference between runs of one recipe is their seed's, which other recipes with that seed share.

    python benchmarks/seed_effects.py           # reads docs/results/paper/*.csv.gz; a second

All runs of scale `bench` with one seed begin with the same warm start and draw the same prompts. The level of a run,
the mean of its readings in the last third of the compute, is taken apart over variants v and seeds s:

    level_vs = variant_v + seed_s + rest_vs

`within_sd` is the deviation between runs of one variant, which comparisons use; `rest_sd` the one that would be left if
variants were compared seed by seed. Variants with the same levels (a curriculum by length is one by difficulty in this
task) count once. Writes `results/seed_effects.json`.
"""

import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import write_record
from scipy.stats import f

CURVES = Path(__file__).parents[1] / "docs/results/paper"


def main() -> None:
    level_VS = levels()
    num_variants, num_seeds = level_VS.shape
    variant_V1, seed_1S = level_VS.mean(1, keepdims=True), level_VS.mean(0, keepdims=True)
    rest_VS = level_VS - variant_V1 - seed_1S + level_VS.mean()
    within = ((level_VS - variant_V1) ** 2).sum() / (num_variants * (num_seeds - 1))
    of_rest = (num_variants - 1) * (num_seeds - 1)
    rest = (rest_VS**2).sum() / of_rest
    of_seeds = num_variants * ((seed_1S - level_VS.mean()) ** 2).sum() / (num_seeds - 1)
    found = {
        "num_variants": num_variants,
        "num_seeds": num_seeds,
        "within_sd": float(np.sqrt(within)),
        "rest_sd": float(np.sqrt(rest)),
        "seed_effects": (seed_1S - level_VS.mean()).ravel().tolist(),
        "F": float(of_seeds / rest),
        "p": float(f.sf(of_seeds / rest, num_seeds - 1, of_rest)),
    }
    write_record("seed_effects", found)
    print(found)


def levels() -> NDArray[np.float64]:
    """[V, S] of every variant whose seeds are all there."""
    runs: dict[str, tuple[int, float]] = {}
    by_variant: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(CURVES.glob("*.csv.gz")):
        readings: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for row in csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines()):
            readings[row["run"]].append((float(row["compute"]), float(row["score"])))
            if row["run"] not in by_variant[path.stem, row["curve"]]:
                by_variant[path.stem, row["curve"]].append(row["run"])
            runs[row["run"]] = int(row["seed"]), 0.0
        for run, points in readings.items():
            end = points[-1][0]
            runs[run] = runs[run][0], float(np.mean([score for compute, score in points if compute >= 2 / 3 * end]))
    rows = {tuple(runs[run][1] for run in sorted(of, key=lambda run: runs[run][0])) for of in by_variant.values()}
    most = max(map(len, rows))
    return np.array(sorted(row for row in rows if len(row) == most))


if __name__ == "__main__":
    main()
