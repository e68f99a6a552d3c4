"""How long `platform compare` takes for 200 runs of another trainer with 1,000 rows each, at first and again.

    PYTHONPATH=platform:trainer python benchmarks/logs_speed.py       # about two minutes

JSON lines as verl's logger of files writes them: 40 variants x 5 seeds, a row per step with 40 metrics and its time, a
score every 25 steps, ceilings from 0.55 to 0.70. The command itself is timed as a user types it, by the clock and in
processor seconds of all its processes, as other work may run beside it: once with an empty home folder, then three
times with what the first has kept. Writes `results/logs_speed.json`.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from record import write_record

VARIANTS, SEEDS, STEPS, EVERY, METRICS, GPUS = 40, 5, 1000, 25, 40, 64
AGAIN = 3
SEED = 0
MOST_FIRST_S, MOST_AGAIN_S = 20.0, 2.0
"""What the command may take, by the clock on a machine that does nothing else."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = write_logs(Path(folder) / "runs")
        megabytes = sum(path.stat().st_size for path in logs) / 1e6
        first, *again = [compare_logs_s(logs, Path(folder) / "home") for _ in range(1 + AGAIN)]
    report = {
        "settings": {"runs": len(logs), "rows": STEPS, "metrics": METRICS, "megabytes": round(megabytes), "seed": SEED},
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 1),
        "first": {"wall_s": first[0], "processor_s": first[1], "most_s": MOST_FIRST_S},
        "again": {
            "wall_s": [wall for wall, _ in again],
            "processor_s": [processor for _, processor in again],
            "most_s": MOST_AGAIN_S,
        },
    }
    print(json.dumps(report, indent=2))
    write_record("logs_speed", report)


def write_logs(folder: Path) -> list[Path]:
    """One file per run."""
    folder.mkdir()
    rng = np.random.default_rng(SEED)
    paths = []
    for variant in range(VARIANTS):
        ceiling = 0.55 + 0.15 * variant / (VARIANTS - 1)
        for seed in range(SEEDS):
            path = folder / f"v{variant:02d}-s{seed}.jsonl"
            paths.append(path)
            seconds = 60 + rng.standard_normal(STEPS)
            hours = np.cumsum(seconds) * GPUS / 3600
            score = 0.2 + (ceiling - 0.2) / (1 + (250 / hours) ** 1.5) + 0.004 * rng.standard_normal(STEPS)
            metrics = rng.random((STEPS, METRICS))
            with path.open("w") as file:
                for step in range(STEPS):
                    data = {f"actor/metric_{number}": float(value) for number, value in enumerate(metrics[step])}
                    data["perf/time_per_step"] = float(seconds[step])
                    if (step + 1) % EVERY == 0:
                        data["val-core/openai/gsm8k/reward/mean@4"] = float(np.clip(score[step], 0, 1))
                    file.write(json.dumps({"step": step + 1, "data": data}) + "\n")
    return paths


def compare_logs_s(logs: list[Path], home: Path) -> tuple[float, float]:
    """Seconds of one command by the clock and of processors."""
    command = [sys.executable, "-m", "ablations.cli", "compare", *map(str, logs)]
    command += ["--log", "verl", "--gpus", str(GPUS), "--home", str(home)]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return round(wall, 2), round(processor, 2)


if __name__ == "__main__":
    main()
