"""Memory and processor time of a short run by the number of kernels that oneDNN keeps, one shape each.

python benchmarks/kept_kernels.py [TURNS]

`scalerl.model.linear` sets 64; 1,024 is the default of PyTorch and oneDNN. Turns alternate.
"""

import os
import subprocess
import sys
import tempfile
from statistics import median

RUN = ["-m", "ablations.cli", "train", "scalerl", "--scale", "bench_november", "--budget", "0.1"]
CAPACITIES = ("1024", "64")


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found: dict[str, list[tuple[float, float]]] = {capacity: [] for capacity in CAPACITIES}
    for _ in range(turns):
        for capacity, rows in found.items():
            rows.append(memory_and_time(capacity))
    for capacity, rows in found.items():
        megabytes, seconds = (median(column) for column in zip(*rows, strict=True))
        print(f"{capacity:>5} kernels kept: {megabytes:,.0f} MB at most, {seconds:.1f} s of processor time")


def memory_and_time(capacity: str) -> tuple[float, float]:
    """Peak resident MB and processor seconds of a run in a process of its own."""
    environment = os.environ | {"LRU_CACHE_CAPACITY": capacity, "ONEDNN_PRIMITIVE_CACHE_CAPACITY": capacity}
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen([sys.executable, *RUN, "--home", home], env=environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the run ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
