"""Two thousand runs on a real Slurm: how long plan, submission and status take, and the most memory that they need.

    PYTHONPATH=tests python benchmarks/slurm_scale.py [--runs 2000] [--repeat 3]

Starts the tests' cluster of one node; the jobs are submitted held, so that nothing trains meanwhile. Times are of whole
commands, Python's start included, on a machine with nothing else to do. Writes `results/slurm_scale.json`.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from integration.conftest import SCALE
from record import write_record
from slurm.cluster import SlurmCluster

LIMITS = {"plan_s": 3.0, "submit_s": 30.0, "status_s": 2.0, "memory_mb": 500.0}
"""What the issue asks for."""
SEEDS = 4


def sweep_text(num_runs: int) -> str:
    """A grid of learning rates, each variant with four seeds; the reference is one of them."""
    rates = "".join(
        f"    r{number}: {{optimiser.learning_rate: {1e-5 * number:.5f}}}\n" for number in range(1, num_runs // SEEDS)
    )
    return (
        f"name: big\nreference: scalerl\nscale: seconds\ngrid:\n  rate:\n{rates}"
        f"seeds: {list(range(SEEDS))}\nresources: {{time_min: 60, mem_gb: 1, at_once: 8}}\n"
    )


def timed(environment: dict[str, str], *arguments: str) -> float:
    """Seconds that a command took; it must succeed or say that runs wait."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "ablations.cli", *arguments]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - started


def measure(cluster: SlurmCluster, folder: Path, num_runs: int, repeat: int) -> dict[str, float]:
    """Medians of several commands; the submission can be made only once in a home folder."""
    (folder / "recipes" / "scales").mkdir(parents=True)
    (folder / "recipes" / "scales" / "seconds.yaml").write_text(SCALE)
    (folder / "sweeps").mkdir()
    file = folder / "sweeps" / "big.yaml"
    file.write_text(sweep_text(num_runs))
    plans, submissions, statuses = [], [], []
    for number in range(repeat):
        home = ("--home", str(folder / f"home-{number}"))
        sweep = ("sweep", str(file), "--executor", "slurm", *home)
        plans.append(timed(cluster.environment, *sweep, "--dry-run"))
        submissions.append(timed(cluster.environment, *sweep, "--yes", "--hold"))
        statuses += [timed(cluster.environment, "status", "big", *home) for _ in range(3)]
        cluster.cancel_all()
    return {
        "plan_s": statistics.median(plans),
        "submit_s": statistics.median(submissions),
        "status_s": statistics.median(statuses),
        "memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def main() -> None:
    """Print the figures beside their limits and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slurm-scale-") as path:
        Path(path).chmod(0o755)
        with SlurmCluster(folder=Path(path) / "cluster") as cluster:
            found = measure(cluster, Path(path) / "study", options.runs, options.repeat)
            version = cluster.run("sinfo", "--version").stdout.strip()
    for name, value in found.items():
        print(f"{name:10} {value:8.2f}   limit {LIMITS[name]:g}")
    write_record("slurm_scale", {"runs": options.runs, "repeats": options.repeat, **found}, slurm=version)


if __name__ == "__main__":
    main()
