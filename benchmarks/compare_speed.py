"""How long `platform compare` takes for 40 variants x 5 seeds, beside another state of the code.

    git worktree add ../before e3959b9
    PYTHONPATH=platform:trainer python benchmarks/compare_speed.py ../before       # about four minutes

A CSV file of 200 curves simulated as in `simulation.py` (38 readings, AR(1) rho 0.7 of every other variant, runs of one
recipe .0075 apart), compared by the command itself, five times by either code in turns, each on one thread. Processor
seconds of the whole command, as other work may run beside it. Writes `results/compare_speed.json`.
"""

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from record import write_record
from simulation import NUM_SAMPLES, SEED, TRUTHS, simulate

from ablations.answers.run_to_run import ASSUMED_SD

VARIANTS = 40
SEEDS = 5
TURNS = 5
NOW = Path(__file__).resolve().parent.parent


def main() -> None:
    trees = {"before": Path(sys.argv[1]).resolve(), "now": NOW}
    seconds: dict[str, list[float]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory() as folder:
        curves = Path(folder) / "curves.csv"
        write_curves(curves)
        for _ in range(TURNS):
            for name, tree in trees.items():
                seconds[name].append(round(compare_s(tree, curves), 2))
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    before = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=trees["before"], text=True).strip()
    report = {
        "settings": {"variants": VARIANTS, "seeds": SEEDS, "turns": TURNS, "seed": SEED, "before": before},
        "processor_s": seconds,
        "median_processor_s": medians,
        "now_over_before": round(medians["now"] / medians["before"], 3),
    }
    print(json.dumps(report, indent=2))
    write_record("compare_speed", report)


def write_curves(path: Path) -> None:
    """The file of curves: ten laws of the paper in turn, as far as half their budget."""
    rng = np.random.default_rng(SEED)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["curve", "seed", "compute", "score", "samples"])
        for variant in range(VARIANTS):
            _, C_mid, B, A, every, budget = TRUTHS[variant % len(TRUTHS)]
            compute = np.arange(0, 0.5 * budget + 1, every, dtype=float)
            rho = 0.7 if variant % 2 else 0.0
            for seed in range(SEEDS):
                of_run = A + ASSUMED_SD * rng.standard_normal()
                score = simulate(compute, A=of_run, B=B, C_mid=C_mid, R_0=0.3, rho=rho, rng=rng)
                for C, R in zip(compute, score, strict=True):
                    writer.writerow([f"v{variant:02d}", seed, C, f"{R:.6f}", NUM_SAMPLES])


def compare_s(tree: Path, curves: Path) -> float:
    """Processor seconds of one comparison by the code of a tree."""
    paths = os.pathsep.join(str(tree / root) for root in ("platform", "trainer", "dashboard"))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "ablations.cli", "compare", str(curves), "--reference", "v00"],
        env=os.environ | one_thread,
        cwd=tree,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
