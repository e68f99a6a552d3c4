"""This machine as a site: runs are processes, through submitit's local executor.

submitit only starts the processes. Each submission has its own folder, because submitit returns old results from a
folder that is reused. submitit hides all GPUs from a local job that asks for none, so each job is told which are its
own.
"""

import os
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import submitit

from ablations.home.home import Home
from ablations.home.state import ask_to_stop
from ablations.pools.job import THREAD_VARIABLES, train_here
from scalerl.process_variables import VISIBLE_GPUS, environment_with

NO_TIME_LIMIT_MIN = 60 * 24 * 365


@dataclass(kw_only=True)
class LocalJob:
    """A run's process, and the GPUs assigned to it."""

    process: submitit.Job[None]
    gpus: tuple[str, ...]
    why: str = ""
    """Empty: this machine gives no reason for killing a process."""
    is_lost: bool = False
    """False: a process here is not lost with its machine."""

    def done(self) -> bool:
        return self.process.done()


@dataclass(kw_only=True)
class ThisMachine:
    """Starts runs as processes on this machine."""

    home: Home
    submissions: Path
    """The folder that contains one folder per submission."""
    threads: int
    """CPU threads per run."""
    gpus: tuple[str, ...] = ()
    """GPUs of this machine; runs share them if there are more runs than GPUs."""
    gpus_of_run: int = 1
    """GPUs that a run can use."""
    _jobs: list[LocalJob] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Empty: this machine needs no mention."""
        return ""

    def start(self, run_id: str, budget_gpu_hours: float) -> LocalJob:
        self._jobs = [job for job in self._jobs if not job.done()]
        gpus = dealt(self.gpus, self.gpus_of_run, [gpu for job in self._jobs for gpu in job.gpus])
        folder = self.submissions / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}"
        executor = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=NO_TIME_LIMIT_MIN, name=run_id)
        run = self.home.run(run_id).path
        threads = {variable: str(self.threads) for variable in THREAD_VARIABLES}
        with environment_with(threads):
            visible = ",".join(gpus) if gpus else os.environ.get(VISIBLE_GPUS)
            process = executor.submit(train_here, run, budget_gpu_hours, self.home.warm_starts, visible)
        self._jobs.append(LocalJob(process=process, gpus=gpus))
        return self._jobs[-1]

    def ask_to_stop(self, run_id: str) -> None:
        """Send SIGTERM to the process that trains the run, even if a killed sweep left it behind."""
        ask_to_stop(self.home.run(run_id))


def most_runs_here(threads: int, gpus: Sequence[str], gpus_of_run: int) -> int:
    """Number of runs with this many threads and GPUs each that this machine can train at once; at least one."""
    most = (os.cpu_count() or 1) // threads
    return max(1, min(most, len(gpus) // gpus_of_run) if gpus else most)


def gpus_here() -> tuple[str, ...]:
    """Names of the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES before the first that names none, such
    as -1, else the indices that `nvidia-smi` lists; none if the command is missing."""
    named = os.environ.get(VISIBLE_GPUS)
    if named is not None:
        return tuple(takewhile(lambda name: name and not name.startswith("-"), named.split(",")))
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(str, range(sum(line.startswith("GPU ") for line in done.stdout.splitlines()))))


def dealt(gpus: tuple[str, ...], number: int, in_use: Iterable[str]) -> tuple[str, ...]:
    """At most `number` GPUs for one more run, those with the fewest runs first.

    >>> dealt(("0", "1", "2"), 2, in_use=["0"])
    ("1", "2")
    """
    runs = Counter(in_use)
    return tuple(sorted(sorted(gpus, key=lambda gpu: runs[gpu])[:number], key=gpus.index))
