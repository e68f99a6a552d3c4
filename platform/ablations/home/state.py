"""The state of a run, from its status file and whether its process is alive."""

import math
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from ablations.home.heartbeat import alive, is_here
from ablations.home.source import is_imported
from scalerl.cluster.placement import UnitState
from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus


class State(StrEnum):
    """The state of a run, as files and tables print it: `State.TIMED_OUT == "timed out"`.

    A run is `stopped` if a stop rule or its curriculum ended it early, `stale` if its process died without reporting,
    and `lost` if its Slurm job did.
    """

    PENDING = "pending"
    QUEUED = "queued"
    REQUEUED = "requeued"
    RUNNING = "running"
    STALE = "stale"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    PREEMPTED = "preempted"
    NODE_FAILED = "node failed"
    LOST = "lost"

    @property
    def is_finished(self) -> bool:
        """True if the sweep has nothing left to do for the run."""
        return self in (State.DONE, State.STOPPED)

    @property
    def is_failure(self) -> bool:
        """True if the run ended early without being asked to."""
        return self in (State.FAILED, State.LOST, State.TIMED_OUT, State.OUT_OF_MEMORY, State.NODE_FAILED)

    @property
    def waits(self) -> bool:
        """True if the run will start or resume by itself."""
        return self in (State.PENDING, State.QUEUED, State.REQUEUED)

    @property
    def is_active(self) -> bool:
        """True if the run is training or Slurm will start it, so that no further `platform sweep` is needed."""
        return self in (State.RUNNING, State.QUEUED, State.REQUEUED)

    @property
    def ends_attempt(self) -> bool:
        """True if a trainer writes this state as it exits."""
        return self in (State.DONE, State.STOPPED, State.FAILED, State.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class RunState:
    """The state of a run with its progress.

    RunState(state=State.RUNNING, step=120, compute_gpu_hours=0.11, pass_rate=0.48, attempt=1, pid=4242)
    """

    state: State
    step: int = 0
    warm_start_step: int = 0
    """Step of the supervised start that the run trains or waits for."""
    compute_gpu_hours: float = 0.0
    wall_s: float = 0.0
    """Wall-clock seconds of all attempts that went into `compute_gpu_hours`; 0 if unknown."""
    pace_s: float | None = None
    """Current wall-clock seconds per GPU-hour."""
    pass_rate: float | None = None
    attempt: int = 0
    message: str = ""
    warnings: tuple[str, ...] = ()
    """Warnings about the health of its last steps (`scalerl.run.health`)."""
    units: tuple[UnitState, ...] = ()
    """The run's processes, while it trains on the wall clock."""
    heartbeat: float = 0.0
    """Time of its last heartbeat, in seconds since 1970."""
    pid: int | None = None
    """The process that trains the run on this machine; None for a process elsewhere, which cannot be signalled from
    here."""

    @property
    def said(self) -> str:
        """Message and warnings on one line."""
        return "; ".join([*filter(None, [self.message]), *(f"warning: {text}" for text in self.warnings)])


def read_state(folder: RunFolder, budget_gpu_hours: float) -> RunState:
    """The state of a run with a budget; a run that finished with less compute is pending again."""
    return state_with(folder, folder.read_status(), budget_gpu_hours)


def state_with(folder: RunFolder, status: RunStatus, budget_gpu_hours: float) -> RunState:
    """The state of a run with a budget, given its status as read from its folder."""
    if not status.has_started:
        return RunState(state=State.PENDING, message=status.message)
    state = state_of(folder, status)
    if state == State.DONE and status.compute_gpu_hours < budget_gpu_hours and not is_imported(folder):
        state = State.PENDING
    if state == State.STOPPED and 0 < status.budget_gpu_hours < budget_gpu_hours:
        state = State.PENDING  # it ended by itself under a smaller budget
    return RunState(
        state=state,
        step=status.step,
        warm_start_step=status.warm_start_step,
        compute_gpu_hours=status.compute_gpu_hours,
        wall_s=status.wall_s,
        pace_s=status.pace_s if state == State.RUNNING else None,
        pass_rate=status.pass_rate,
        attempt=status.attempt,
        message=status.message,
        warnings=status.warnings,
        units=status.units if state == State.RUNNING else (),
        heartbeat=status.heartbeat,
        pid=status.pid if state == State.RUNNING and is_here(status) else None,
    )


def state_of(folder: RunFolder, status: RunStatus) -> State:
    """The state of a started run according to its status, regardless of its budget; stale if its process has gone."""
    state = State(status.state)
    return State.STALE if state == State.RUNNING and not alive(folder, status) else state


def wait_again(folder: RunFolder, budget_gpu_hours: float) -> None:
    """Make a run that ended early pending again, since a pool will resume it."""
    own = read_state(folder, budget_gpu_hours).state
    if not (own.is_finished or own.is_active or own == State.PENDING):
        with suppress(OSError):  # a full disk must not end the sweep, whose pool resumes the run in any case
            folder.write_status(replace(folder.read_status(), state=State.PENDING.value, message="", units=()))


def ask_to_stop(folder: RunFolder) -> None:
    """Send SIGTERM to the local process that trains a run, if any; the trainer saves a checkpoint and exits."""
    pid = read_state(folder, math.inf).pid
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
