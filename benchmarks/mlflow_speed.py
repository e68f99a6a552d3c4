"""How long `platform sync` takes to bring a whole sweep to MLflow, and to find that nothing is new.

    PYTHONPATH=platform:trainer python benchmarks/mlflow_speed.py        # some minutes

A generated home folder (`generated_home.py`): 40 variants of 5 seeds with 200 evaluations and 200 steps of 20 numbers.
Its fits are stored first, as after `platform compare`. Then everything is pushed into the home folder's own SQLite
store: rows, then the fit, the figure and the verdicts of every variant; and the command is started once more. Wall
clock, so other work on the machine counts: the load average is recorded beside the times, with the processor time of
each part, which says what an idle machine would need. `--variants`, `--seeds` and `--evaluations` make it smaller, and
write no record. Writes `results/mlflow_speed.json`.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from generated_home import Size, write_home
from record import write_record

from ablations.findings.results import read_results
from ablations.home.started_sweep import StartedSweep
from ablations.tracking.push_missing import push_sweep

SIZE = Size(variants=40, seeds=5, evaluations=200, metrics=20)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("variants", "seeds", "evaluations"):
        parser.add_argument(f"--{name}", type=int, default=getattr(SIZE, name))
    size = Size(metrics=SIZE.metrics, **vars(parser.parse_args()))
    with TemporaryDirectory() as folder:
        sweep = write_home(Path(folder) / "home", size)
        found = {"size": asdict(size), **timed(sweep)}
    print(json.dumps(found, indent=2))
    if size == SIZE:
        write_record("mlflow_speed", found)


def timed(sweep: StartedSweep) -> dict[str, object]:
    """Seconds of each part, and what MLflow has in the end."""
    begun = time.monotonic()
    read_results(sweep)
    fits_s = time.monotonic() - begun

    load_before = os.getloadavg()[0]
    begun, cpu = time.monotonic(), time.process_time()
    rows_s = rows_cpu_s = 0.0

    def note(done: int, total: int) -> None:
        nonlocal rows_s, rows_cpu_s
        rows_s, rows_cpu_s = time.monotonic() - begun, time.process_time() - cpu

    report = push_sweep(sweep, None, note)
    sync_s, sync_cpu_s = time.monotonic() - begun, time.process_time() - cpu
    assert (report.rows_left, report.reason) == (0, ""), report

    begun = time.monotonic()
    command = [sys.executable, "-m", "ablations.cli", "sync", sweep.name, "--home", str(sweep.home.path)]
    subprocess.run(command, check=True, capture_output=True)
    again_s = time.monotonic() - begun

    store = sweep.home.path / "mlflow.db"
    with closing(sqlite3.connect(store)) as opened:
        (points,) = opened.execute("SELECT count(*) FROM metrics").fetchone()
    return {
        "load_average_before_sync": load_before,
        "load_average_after": os.getloadavg()[0],
        "first_fits_s": round(fits_s, 1),
        "rows": report.rows_pushed,
        "numbers_in_mlflow": points,
        "rows_s": round(rows_s, 1),
        "rows_cpu_s": round(rows_cpu_s, 1),
        "rows_per_s": round(report.rows_pushed / rows_s),
        "numbers_per_s": round(points / rows_s),
        "sync_s": round(sync_s, 1),
        "sync_cpu_s": round(sync_cpu_s, 1),
        "again_s": round(again_s, 1),
        "store_mb": round(store.stat().st_size / 1e6),
        "run_logs_mb": round(sum(sweep.run(run.id).metrics.stat().st_size for run in sweep.plan.runs) / 1e6),
    }


if __name__ == "__main__":
    main()
