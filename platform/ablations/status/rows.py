"""One run of a sweep with its state, and sums over all runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ablations.home.heartbeat import HEARTBEAT_LIMIT_S
from ablations.home.labels import run_name
from ablations.home.plan import Plan
from ablations.home.state import RunState, State
from ablations.status.time_left import sweep_seconds_left
from scalerl.run.status import RunStatus

BEYOND = 1.1
"""Largest multiple of the budget that a run's last step can reach."""


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run with its state.

    RunRow(variant="loo-loss", seed=0, id="81d2f0a95c3b", state=RunState(state=State.RUNNING, ...))
    """

    variant: str
    seed: int
    id: str
    state: RunState
    is_due: bool = True
    """False for a pending run while no `platform sweep` is at work on this machine, which would start it."""
    status: RunStatus = field(default_factory=RunStatus)
    """What the run says of itself."""

    @property
    def name(self) -> str:
        """The run's name: `loo-loss-s0`."""
        return run_name(self.variant, self.seed)


def share(state: RunState, plan: Plan) -> float:
    """Compute spent as a fraction of the budget, at most 1."""
    return min(1.0, state.compute_gpu_hours / plan.budget_gpu_hours)


def comparable_rate(state: RunState, plan: Plan) -> float | None:
    """The last pass rate; None if the run has trained well beyond the budget, for example for another sweep."""
    return state.pass_rate if state.compute_gpu_hours < BEYOND * plan.budget_gpu_hours else None


def spent(rows: Sequence[RunRow]) -> float:
    """GPU-hours of all runs together."""
    return sum(row.state.compute_gpu_hours for row in rows)


def left_to_train(plan: Plan, rows: Sequence[RunRow]) -> float:
    """Upper limit of the GPU-hours still to train."""
    return sum(
        max(0.0, plan.budget_gpu_hours - row.state.compute_gpu_hours)
        for row in rows
        if row.state.state != State.STOPPED
    )


def rows_seconds_left(plan: Plan, rows: Sequence[RunRow]) -> float | None:
    """Seconds until all runs that are due have ended (`ablations.status.time_left`); None if unknown."""
    return sweep_seconds_left([row.state for row in rows if row.is_due], plan.budget_gpu_hours, time.time())


def is_going_on(states: Sequence[RunState], *, is_swept: bool, now: float) -> bool:
    """True if a run is training or waiting; `now` is a Unix time.

    `is_swept` means that a `platform sweep` is at work, which starts pending runs. A run preempted a moment ago is
    requeued as soon as Slurm has ended its job; a run that stays preempted is not.
    """
    is_leaving = any(state.state == State.PREEMPTED and now - state.heartbeat < HEARTBEAT_LIMIT_S for state in states)
    return is_swept or is_leaving or any(state.state.is_active for state in states)
