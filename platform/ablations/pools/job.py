"""What runs inside a job: one training, with its output in the run's log of this attempt."""

import os
import sys
import traceback
from pathlib import Path

from ablations.pools.code_version import code_version
from scalerl.run.errors import Busy, Cancelled
from scalerl.run.run_folder import RunFolder

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that limit the threads of the libraries in a job."""


def train_run(path: Path, budget_gpu_hours: float, warm_starts: Path) -> None:
    """Train the run in folder `path`. Raises nothing: its status file and log say how it ended."""
    folder = RunFolder(path)
    attempt = folder.read_status().attempt + 1
    redirect_output(folder.log(attempt))
    from scalerl.run.train import train  # torch takes seconds to load, and only jobs need it

    try:
        train(path, budget_gpu_hours=budget_gpu_hours, warm_starts=warm_starts, code_version=code_version())
    except (Busy, Cancelled) as reason:
        print(reason, flush=True)
    except Exception:
        traceback.print_exc()


def redirect_output(log: Path) -> None:
    """Append what this process prints from here on to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
