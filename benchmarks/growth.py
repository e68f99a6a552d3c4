"""What long logs and many runs cost in memory and processor seconds, beside another state of the code.

    git worktree add ../before 5a372e10
    PYTHONPATH=platform:trainer:benchmarks python benchmarks/growth.py ../before/.venv/bin/python
    PYTHONPATH=platform:trainer:benchmarks python benchmarks/growth.py --share .1        # a tenth of the sizes

Logs of another trainer as JSON lines, the same gzipped, and CSV, each of 500 MB; a sweep of two runs of 500,000 rows;
the doctor on one of them; `compare` and `forecast` of 2,000 generated runs (`generated_home.py`), for the first time
and again. Each command is run by either code in turns, with a home folder of its own. Processor seconds are those of
the command and all its processes; the most memory is that of the largest of them. Without the path of another Python
only this code is run. Files take 3 GB at full size, and are removed. Writes `results/growth.json`.
"""

import argparse
import gzip
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from generated_home import NAME, Size, write_home
from record import write_record

LOG_MB, OWN_ROWS, RUNS, SEEDS = 500, 500_000, 2000, 5
METRICS, EVERY = 40, 25
SEED = 0
MOST_MB = {"log jsonl": 600, "log jsonl.gz": 600, "log csv": 600, "own run": 600}
MOST_S = {"doctor": 15.0, "forecast again": 3.0}
"""What the commands may take at full size, on a machine that does nothing else."""
STARTER = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(done.returncode)
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("before", nargs="?", help="Python of another state of the code")
    asked.add_argument("--share", type=float, default=1.0, help="share of the sizes")
    asked.add_argument("--only", default="", help="cases whose name contains this")
    given = asked.parse_args()
    pythons = {"now": sys.executable} | ({"before": given.before} if given.before else {})
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, command, home in cases(Path(folder), given.share, given.only, list(pythons)):
            for code, python in pythons.items():
                of_case = found.setdefault(name, {})[code] = measured(python, [*command, "--home", str(home / code)])
                print(f"{name:16} {code:7} {of_case['processor_s']:8.1f} s {of_case['most_mb']:7.0f} MB", flush=True)
    write_record("growth", {"share": given.share, "most_mb": MOST_MB, "most_s": MOST_S, "found": found})


def cases(folder: Path, share: float, only: str, codes: list[str]) -> Iterator[tuple[str, list[str], Path]]:
    """Name, command and home folder of each case; what only some need is removed behind them."""
    for form in ("jsonl", "jsonl.gz", "csv"):
        if only in f"log {form}":
            log = folder / f"run-s0.{form}"
            write_log(log, share * LOG_MB)
            meaning = ["--score", "val/acc", "--compute", "cumsum(perf/time_per_step) / 3600"]
            yield f"log {form}", ["compare", str(log), *meaning], folder / "logs"
            log.unlink()
    if only in "own run doctor":
        home = folder / "own"
        sweep = write_home(home / "now", Size(variants=2, seeds=1, evaluations=round(share * OWN_ROWS / 2), metrics=29))
        copied(home, codes)
        yield "own run", ["compare", NAME], home
        yield "doctor", ["doctor", sweep.plan.runs[0].id], home
        shutil.rmtree(home)
    if only in "compare first again forecast":
        home = folder / "many"
        write_home(
            home / "now", Size(variants=max(2, round(share * RUNS / SEEDS)), seeds=SEEDS, evaluations=40, metrics=20)
        )
        copied(home, codes)
        for command in ("compare", "forecast"):
            for when in ("first", "again"):
                yield f"{command} {when}", [command, NAME], home


def copied(home: Path, codes: list[str]) -> None:
    """A home folder for each code, so that none finds what another has kept."""
    for code in codes:
        if code != "now":
            shutil.copytree(home / "now", home / code)


def write_log(path: Path, megabytes: float) -> None:
    """A row per step with 40 metrics and its time, a score every 25 steps that rises to .6."""
    rng, written, step = np.random.default_rng(SEED), 0, 0
    names = [*(f"actor/metric_{number}" for number in range(METRICS)), "perf/time_per_step", "val/acc"]
    with gzip.open(path, "wt", compresslevel=1) if path.suffix == ".gz" else path.open("w") as file:
        if path.suffix == ".csv":
            written += file.write(",".join(("step", *names)) + "\n")
        while written < megabytes * 1e6:
            step += 1
            values = [*rng.random(METRICS).tolist(), 60 + float(rng.standard_normal())]
            values.append(0.2 + 0.4 / (1 + 1000 / step) + 0.004 * values[0] if step % EVERY == 0 else math.nan)
            if path.suffix == ".csv":
                line = ",".join((str(step), *("" if math.isnan(one) else repr(one) for one in values)))
            else:
                row = {name: one for name, one in zip(names, values, strict=True) if not math.isnan(one)}
                line = json.dumps({"step": step} | row)
            written += file.write(line + "\n")


def measured(python: str, command: list[str]) -> dict[str, Any]:
    """Processor seconds and most memory of one command; its output is thrown away."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # A small process in between: the kernel counts the memory of whoever starts a program as the program's own.
    done = subprocess.run(
        [sys.executable, "-S", "-c", STARTER, python, "-m", "ablations.cli", *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    seconds, kilobytes = map(float, done.stdout.split())
    return {"processor_s": round(seconds, 1), "most_mb": round(kilobytes / 1024)}


if __name__ == "__main__":
    main()
