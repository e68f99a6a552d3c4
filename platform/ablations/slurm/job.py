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
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.notifications import tell_webhook
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import RunState, State, read_state
from ablations.pools.job import attend_run, let_agents_go, train_run
from ablations.slurm.hold import hold_after_failure, read_hold
from ablations.slurm.requeue import (
    WAIT_FOR_THE_END_S,
    is_preempted,
    is_stuck,
    requeue_this_job,
    requeue_without_its_first_node,
)
from ablations.slurm.states import SlurmStates
from scalerl.cluster.placement import NodeOfRun
from scalerl.run.run_folder import RunFolder


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
