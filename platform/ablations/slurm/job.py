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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ablations.home.home import Home
from ablations.home.state import RunState, State, read_state
from ablations.pools.job import train_run
from ablations.slurm import commands
from ablations.slurm.hold import hold_after_failure
from scalerl.run.run_folder import RunFolder

WAIT_FOR_THE_END_S = 300.0
"""Longer than the grace period of a preemption should be; then the job ends by itself."""
ASK_AGAIN_S = 5.0
"""Until Slurm is asked once more for what it did not answer."""


@dataclass
class SlurmJob:
    """Trains one run of a sweep; submitit calls it in the job, again after each requeue."""

    home: Path
    sweep: str
    run: str
    budget_gpu_hours: float
    watch: Path
    """Folder where `began` says that jobs get as far as this."""
    _limit_is_near: bool = False

    def __call__(self) -> None:
        """Train unless the run is done, as it is when another sweep was faster. Exits with 1 when the run failed.

        Slurm starts it on every node of the job; the first trains.
        """
        if os.environ.get("SLURM_PROCID", "0") != "0":
            return
        self.watch.mkdir(parents=True, exist_ok=True)
        (self.watch / "began").touch()
        before = self._state()
        if before.state == State.DONE:
            return
        # submitit's own handler stands here: it would requeue before our checkpoint is written.
        signal.signal(signal.SIGUSR2, self._stop_for_limit)
        train_run(self._folder.path, self.budget_gpu_hours, Home(self.home).warm_starts)
        state = self._state()
        if state.state == State.FAILED:
            self._end_failed()
        if state.state == State.DONE:
            return
        if self._limit_is_near:
            self._requeue(before, state)
        elif is_preempted(os.environ["SLURM_JOB_ID"]):
            self._write_state(State.PREEMPTED, "a job of a higher priority takes its place; its checkpoint is written")
            time.sleep(WAIT_FOR_THE_END_S)

    def _requeue(self, before: RunState, after: RunState) -> None:
        """Back to the queue, unless two jobs in a row brought the run no step further: a third would not either."""
        if after.step == before.step and int(os.environ.get("SLURM_RESTART_COUNT", "0")) > 0:
            text = "two jobs reached their time limit without a single step; give resources.time_min more"
            self._write_state(State.FAILED, text)
            self._end_failed()
        self._write_state(State.REQUEUED, "its time limit came near; its checkpoint is written")
        deadline = time.monotonic() + WAIT_FOR_THE_END_S
        while time.monotonic() < deadline:  # Slurm ends this process sooner, unless its controller is away
            with suppress(commands.SlurmSilent):
                commands.requeue(os.environ["SLURM_JOB_ID"])
                time.sleep(WAIT_FOR_THE_END_S)
            time.sleep(ASK_AGAIN_S)

    def _end_failed(self) -> None:
        if hold := hold_after_failure(Home(self.home), self.sweep):
            print(f"what waits of {self.sweep} is held: {hold}", flush=True)
        sys.exit(1)

    def _stop_for_limit(self, _: int, __: FrameType | None) -> None:
        self._limit_is_near = True
        os.kill(os.getpid(), signal.SIGTERM)  # training takes it as the wish to write a checkpoint and end

    @property
    def _folder(self) -> RunFolder:
        return Home(self.home).run(self.run)

    def _state(self) -> RunState:
        return read_state(self._folder, self.budget_gpu_hours)

    def _write_state(self, state: State, message: str) -> None:
        """In the place of "cancelled", which is all that training knows of a signal."""
        status = self._folder.read_status()
        if status.get("pid") == os.getpid():  # else another process has the run
            self._folder.write_status(status | {"state": state, "message": message, "heartbeat": time.time()})


def is_preempted(job: str) -> bool:
    """Whether Slurm is about to end this job for another one. Yes where the controller does not answer: waiting costs
    a node some minutes, leaving costs the run its place in the queue.
    """
    try:
        return re.search(r"PreemptTime=\d", commands.run("scontrol", "show", "job", job)) is not None
    except commands.SlurmSilent:
        return True
