"""What runs inside a Slurm job: one run, until its budget or until Slurm wants the node back.

Slurm says so with a signal, and the run writes its checkpoint on each of them:

    SIGUSR2   the time limit is near        then the job sends itself back to the queue
    SIGTERM   a job of a higher partition   then it waits to be ended: Slurm requeues what it ended, not what left
              wants the place
    SIGTERM   scancel                       then it ends
"""

import os
import re
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from ablations.job import train_run
from ablations.slurm import commands
from ablations.state import RunState, read_state
from scalerl.run_folder import RunFolder

WAIT_FOR_THE_END_S = 300.0
"""Longer than the grace period of a preemption should be; then the job ends by itself."""


class SlurmJob:
    """Trains one run; submitit calls it in the job, again after each requeue."""

    def __init__(self, path: Path, budget_gpu_hours: float, warm_starts: Path) -> None:
        self.path, self.budget_gpu_hours, self.warm_starts = path, budget_gpu_hours, warm_starts
        self._limit_is_near = False

    def __call__(self) -> None:
        """Train unless the run is done, as it is when another sweep was faster. Exits with 1 when the run failed."""
        if self._state().state == "done":
            return
        # submitit's own handler stands here: it would requeue before our checkpoint is written.
        signal.signal(signal.SIGUSR2, self._stop_for_limit)
        train_run(self.path, self.budget_gpu_hours, self.warm_starts)
        state, job = self._state(), os.environ["SLURM_JOB_ID"]
        if state.state == "failed":
            sys.exit(1)
        if state.state == "done":
            return
        if self._limit_is_near:
            commands.requeue(job)
        if self._limit_is_near or is_preempted(job):
            time.sleep(WAIT_FOR_THE_END_S)

    def _stop_for_limit(self, _: int, __: FrameType | None) -> None:
        self._limit_is_near = True
        os.kill(os.getpid(), signal.SIGTERM)  # training takes it as the wish to write a checkpoint and end

    def _state(self) -> RunState:
        return read_state(RunFolder(self.path), self.budget_gpu_hours)


def is_preempted(job: str) -> bool:
    """Whether Slurm is about to end this job for another one. Yes where the controller does not answer: waiting costs
    a node some minutes, leaving costs the run its place in the queue.
    """
    try:
        return re.search(r"PreemptTime=\d", commands.run("scontrol", "show", "job", job)) is not None
    except commands.SlurmSilent:
        return True
