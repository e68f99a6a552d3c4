"""The process of a part: what it left behind, however it ended."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpu_report.child import ERROR_SUFFIX
from gpu_report.results import Row, completed, read_results


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """`PartResult(name="step", wall_s=21.4, limit_s=600, error="", rows=[...])`."""

    name: str
    wall_s: float
    limit_s: float
    error: str
    """Last line of its traceback, or how its process ended; empty if it ended well."""
    rows: list[Row]


def run_alone(part: str, *, device: str, limit_s: float, model: Path | None, log: Path) -> PartResult:
    """Run a part in a process of its own for at most `limit_s` seconds; its output goes to `log`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-report-", ignore_cleanup_errors=True) as name:
        rows, scratch = Path(name) / "rows.jsonl", Path(name) / "scratch"
        scratch.mkdir()
        told = {
            "part": part,
            "device": device,
            "limit_s": limit_s,
            "rows": str(rows),
            "scratch": str(scratch),
            "model": None if model is None else str(model),
        }
        command = [sys.executable, "-m", "gpu_report.child", json.dumps(told)]
        with log.open("w") as output:
            # A session of its own: engines that the part started end with it.
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            error = _ended(process, limit_s)
        with suppress(OSError):
            error = rows.with_suffix(ERROR_SUFFIX).read_text() or error
        found = read_results(rows)
    wall_s = round(time.monotonic() - began, 1)
    return PartResult(name=part, wall_s=wall_s, limit_s=limit_s, error=error, rows=completed(part, found, error))


def _ended(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """How the process ended; empty if well."""
    try:
        status = process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return f"not finished after its limit of {limit_s:g} s"
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status < 0:
        return f"its process was ended by signal {-status} ({signal.Signals(-status).name})"
    return f"its process ended with status {status}" if status else ""
