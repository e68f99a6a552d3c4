"""The program of a Slurm job: trains one run, until it reaches its budget or Slurm wants the node back.

Slurm announces the latter with a signal, and on each signal the run saves its checkpoint:

    SIGUSR2   the time limit is near               the job requeues itself
    SIGTERM   a job of a higher partition is next  the job waits to be ended: Slurm requeues no job that left
    SIGTERM   scancel                              the job ends

In a job over several nodes the first node trains. The others run agents, which start processes when the first node asks
and exit when it lets them; Slurm's signals, which they get too, mean nothing to them. If the first node is gone, with
srun and the batch script, nobody else would end the job, so the agents requeue it.
"""

import os
import re
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.notifications import tell_webhook
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import RunState, State, read_state
from ablations.pools.job import attend_run, let_agents_go, train_run
from ablations.slurm import commands
from ablations.slurm.hold import hold_after_failure, read_hold
from ablations.slurm.states import SlurmStates
from scalerl.cluster.placement import NodeOfRun
from scalerl.run.run_folder import RunFolder

ASK_AGAIN_S = 5.0
"""Seconds between attempts while the controller does not answer."""
WAIT_FOR_THE_END_S = 300.0
"""Seconds that a job waits for Slurm to end it before it exits by itself; longer than any reasonable grace period."""
ANSWER_S = 5.0
"""Seconds within which a node's slurmd must accept a connection."""


def is_stuck(*, num_steps: int, num_restarts: int) -> bool:
    """True if two jobs in a row reached their time limit without a step; a third would do no better."""
    return num_steps == 0 and num_restarts > 0


def requeue_this_job() -> None:
    """Requeue the job of this process; Slurm ends the process in the meantime.

    Returns after `WAIT_FOR_THE_END_S` if the controller does not answer for so long.
    """
    deadline = time.monotonic() + WAIT_FOR_THE_END_S
    while time.monotonic() < deadline:
        with suppress(commands.SlurmSilent):
            commands.requeue(own_job())
            time.sleep(WAIT_FOR_THE_END_S)
        time.sleep(ASK_AGAIN_S)


@dataclass
class SlurmJob:
    """Trains one run of a sweep; submitit calls it inside the job, again after each requeue."""

    home: Path
    sweep: str
    run: str
    budget_gpu_hours: float
    watch: Path
    """Folder in which a file `began` records that the job got this far."""
    _limit_is_near: bool = False
    """True once Slurm has sent its signal before the time limit."""

    def __call__(self) -> None:
        """Train, unless another sweep has finished the run in the meantime. Exits with 1 if the run failed.

        Slurm calls this on every node of the job.
        """
        place = node_of_job()
        if place.node:
            if not attend_run(self._folder.path, place):
                requeue_without_its_first_node()
            return
        self.watch.mkdir(parents=True, exist_ok=True)
        (self.watch / "began").touch()
        before = self._state()
        if before.state.is_finished:
            let_agents_go(self._folder.path, place)
            return
        # Replaces submitit's handler, which would requeue the job before the checkpoint is saved.
        signal.signal(signal.SIGUSR2, self._stop_training)
        train_run(self._folder.path, self.budget_gpu_hours, Home(self.home).warm_starts, place)
        state = self._state()
        if state.state == State.FAILED:
            self._end_failed()
        if state.state.is_finished:
            self._tell()
            return
        if self._limit_is_near:
            supervised = state.warm_start_step - before.warm_start_step
            self._requeue(num_steps=state.step - before.step + max(0, supervised))
        elif is_preempted():
            self._write_state(State.PREEMPTED, "preempted by a job with a higher priority; checkpoint saved")
            time.sleep(WAIT_FOR_THE_END_S)

    def _stop_training(self, _: int, __: FrameType | None) -> None:
        self._limit_is_near = True
        os.kill(os.getpid(), signal.SIGTERM)  # at which the training saves its checkpoint and ends

    def _requeue(self, num_steps: int) -> None:
        if is_stuck(num_steps=num_steps, num_restarts=int(os.environ.get("SLURM_RESTART_COUNT", "0"))):
            text = "two jobs in a row reached their time limit without a single step; raise resources.time_min"
            self._write_state(State.FAILED, text)
            self._end_failed()
        self._write_state(State.REQUEUED, "the time limit was near; checkpoint saved")
        requeue_this_job()

    def _end_failed(self) -> None:
        try:
            if hold := hold_after_failure(Home(self.home), self.sweep):
                print(f"the waiting jobs of {self.sweep} are held: {hold}", flush=True)
        except AblationsError as error:
            print(f"the waiting jobs of {self.sweep} are not held: {error}", flush=True)
        self._tell()
        sys.exit(1)

    def _tell(self) -> None:
        """Tell the sweep's webhook what is new, as no command watches its jobs."""
        try:
            sweep = read_sweep(Home(self.home), self.sweep)
            if sweep.plan.notify is None:
                return
            slurm, hold = SlurmStates(sweep.home), read_hold(sweep.home, self.sweep)
            states = {run.id: self._state_of(run.id, sweep, slurm) for run in sweep.plan.runs}
            why = tell_webhook(sweep, states, str(hold) if hold else "")
        except AblationsError as error:  # the run has ended, and its end is written
            why = f"could not tell {self.sweep}'s webhook: {error}"
        if why:
            print(why, flush=True)

    def _state_of(self, run_id: str, sweep: StartedSweep, slurm: SlurmStates) -> RunState:
        if run_id == self.run:
            return self._state()  # Slurm still calls this job running
        return slurm.state(run_id, read_state(sweep.run(run_id), sweep.plan.budget_gpu_hours))

    @property
    def _folder(self) -> RunFolder:
        return Home(self.home).run(self.run)

    def _state(self) -> RunState:
        return read_state(self._folder, self.budget_gpu_hours)

    def _write_state(self, state: State, message: str) -> None:
        """Replace "cancelled", which the training writes on any signal."""
        status = self._folder.read_status()
        if status.pid == os.getpid():  # otherwise another process has the run
            self._folder.write_status(replace(status, state=state, message=message, heartbeat=time.time()))


def is_preempted() -> bool:
    """True if Slurm is about to end this job for another one, or if the controller does not answer.

    Waiting in vain costs a node some minutes; leaving costs the run its place in the queue.
    """
    try:
        return re.search(r"PreemptTime=\d", commands.run_command("scontrol", "show", "job", own_job())) is not None
    except commands.SlurmSilent:
        return True


def own_job() -> str:
    """Slurm's id of this job; of an array that of the task, since one task has its array's number as SLURM_JOB_ID."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]


def node_of_job() -> NodeOfRun:
    """The node of this task, from Slurm's variables; Slurm starts one task on each node of the job.

    SLURM_LAUNCH_NODE_IPADDR is the first node, where srun was started, as seen from this node. The name of the node is
    Slurm's own, because several may share a host. The nodes of a requeued job meet anew.
    """
    address = os.environ.get("SLURM_LAUNCH_NODE_IPADDR")
    return NodeOfRun(
        node=int(os.environ["SLURM_NODEID"]),
        nodes=int(os.environ["SLURM_NNODES"]),
        allocation=f"{os.environ['SLURM_JOB_ID']}.{os.environ.get('SLURM_RESTART_COUNT', '0')}",
        name=os.environ["SLURMD_NODENAME"],
        hosts=(address,) if address else (),
    )


def requeue_without_its_first_node() -> None:
    """Requeue this job if nobody listens on its first node. If only the run's process died, the batch script ends it.

    With `--no-kill` Slurm itself would let such a job idle until its time limit. Each of the other nodes does this; for
    all but the first one, Slurm answers that the job is already waiting.
    """
    job = own_job()
    with suppress(commands.SlurmError):
        address = commands.address_of_node(commands.first_node(job))
        try:
            socket.create_connection(address, timeout=ANSWER_S).close()
        except OSError:
            print(f"the first node of job {job} is gone; requeueing the job", flush=True)
            commands.requeue(job)
