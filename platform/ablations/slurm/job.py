"""What runs inside a Slurm job: one run, until it reaches its budget or Slurm wants the node back.

Slurm says so with a signal, and on each of them the run writes its checkpoint:

    SIGUSR2   the time limit is near               the job sends itself back to the queue
    SIGTERM   a job of a higher partition is next  the job waits until Slurm ends it: Slurm requeues no job that left
    SIGTERM   scancel                              the job ends

Of a job over several nodes the first trains. The others have agents, which start processes there when the first says
so, and go when it lets them; Slurm's signals, which they get too, mean nothing to them. Should the first node be gone,
with srun and the batch script, nobody else would end the job, and they send it back to the queue.
"""

import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ablations.home.home import Home
from ablations.home.state import RunState, State, read_state
from ablations.pools.job import attend_run, let_agents_go, train_run
from ablations.slurm import commands
from ablations.slurm.first_node import requeue_without_its_first_node
from ablations.slurm.hold import hold_after_failure
from ablations.slurm.node_of_job import node_of_job
from ablations.slurm.requeue_before_time_limit import TimeLimit, is_stuck, requeue_this_job
from scalerl.run.run_folder import RunFolder

WAIT_FOR_THE_END_S = 300.0
"""Seconds that a job waits for Slurm to end it, then it ends by itself; longer than any grace period should be."""


@dataclass
class SlurmJob:
    """Trains one run of a sweep; submitit calls it in the job, again after each requeue."""

    home: Path
    sweep: str
    run: str
    budget_gpu_hours: float
    watch: Path
    """Folder where the file `began` says that jobs get as far as this."""

    def __call__(self) -> None:
        """Train, unless another sweep has finished the run meanwhile. Exits with 1 when the run failed.

        Slurm starts this on every node of the job.
        """
        place = node_of_job(os.environ)
        if place.node:
            if not attend_run(self._folder.path, place):
                requeue_without_its_first_node(os.environ["SLURM_JOB_ID"])
            return
        self.watch.mkdir(parents=True, exist_ok=True)
        (self.watch / "began").touch()
        before = self._state()
        if before.state.is_finished:
            let_agents_go(self._folder.path, place)
            return
        limit = TimeLimit()
        limit.watch()
        train_run(self._folder.path, self.budget_gpu_hours, Home(self.home).warm_starts, place)
        state = self._state()
        if state.state == State.FAILED:
            self._end_failed()
        if state.state.is_finished:
            return
        if limit.is_near:
            supervised = state.warm_start_step - before.warm_start_step
            self._requeue(num_steps=state.step - before.step + max(0, supervised))
        elif is_preempted(os.environ["SLURM_JOB_ID"]):
            self._write_state(
                State.PREEMPTED, "a job with a higher priority takes its place; its checkpoint is written"
            )
            time.sleep(WAIT_FOR_THE_END_S)

    def _requeue(self, num_steps: int) -> None:
        if is_stuck(num_steps=num_steps, num_restarts=int(os.environ.get("SLURM_RESTART_COUNT", "0"))):
            text = "two jobs in a row reached their time limit without a single step; raise resources.time_min"
            self._write_state(State.FAILED, text)
            self._end_failed()
        self._write_state(State.REQUEUED, "its time limit was near; its checkpoint is written")
        requeue_this_job(os.environ["SLURM_JOB_ID"], WAIT_FOR_THE_END_S)

    def _end_failed(self) -> None:
        if hold := hold_after_failure(Home(self.home), self.sweep):
            print(f"the waiting jobs of {self.sweep} are held: {hold}", flush=True)
        sys.exit(1)

    @property
    def _folder(self) -> RunFolder:
        return Home(self.home).run(self.run)

    def _state(self) -> RunState:
        return read_state(self._folder, self.budget_gpu_hours)

    def _write_state(self, state: State, message: str) -> None:
        """Replace "cancelled", which the training writes on any signal."""
        status = self._folder.read_status()
        if status.pid == os.getpid():  # else another process has the run
            self._folder.write_status(replace(status, state=state, message=message, heartbeat=time.time()))


def is_preempted(job: str) -> bool:
    """Whether Slurm is about to end this job for another one; yes when the controller is silent.

    To wait in vain costs a node some minutes; to leave costs the run its place in the queue.
    """
    try:
        return re.search(r"PreemptTime=\d", commands.run_command("scontrol", "show", "job", job)) is not None
    except commands.SlurmSilent:
        return True
