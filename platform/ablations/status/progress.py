"""Where every run of a sweep is, read from the run folders and Slurm."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ablations.home.allocation import Allocation, read_plan_allocation
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.state import RunState, State, is_locked, read_state
from ablations.home.stops import Stopped, read_stops
from ablations.slurm.states import SlurmStates
from ablations.status.failures import Failure
from ablations.status.rows import Row, is_going_on, rows_seconds_left, spent
from ablations.status.time_left import seconds_left


def read_rows(home: Home, plan: Plan) -> list[Row]:
    """The state of every run of the plan: done when it has what the sweep gives it, stopped when a rule ended it."""
    allocation, stops = read_plan_allocation(home, plan), read_stops(home.sweep(plan.sweep), plan)
    slurm = SlurmStates(home)
    return [
        Row(
            variant=variant.name,
            seed=run.seed,
            id=run.id,
            state=_state_in_sweep(home, plan, run.id, allocation, stops.get(run.id), slurm),
        )
        for variant in plan.variants
        for run in variant.runs
    ]


def _state_in_sweep(
    home: Home,
    plan: Plan,
    run_id: str,
    allocation: Allocation | None,
    stopped: Stopped | None,
    slurm: SlurmStates,
) -> RunState:
    """The state of a run with what the sweep has decided of it; its folder is shared and knows nothing of that."""
    allotted = allocation.allotted.get(run_id) if allocation else None
    own = read_state(home.run(run_id), plan.budget_gpu_hours if allotted is None else allotted)
    state = slurm.state(run_id, own)
    said = [state.message] if state.message else []
    # Another sweep, without the rule, may have trained it to the end since.
    if stopped and stopped.ends_run and state.compute_gpu_hours < plan.budget_gpu_hours:
        still = "; still training" if state.state == State.RUNNING else ""
        return replace(state, state=State.STOPPED, message=stopped.text(plan) + still)
    if stopped and not stopped.ends_run:
        said.append(stopped.text(plan))
    if allocation and allotted is not None:
        said.append(f"given {plan.hours_text(allotted)}: {allocation.last_word(run_id)}")
    return replace(state, message="; ".join(said))


def is_still_going(home: Home, plan: Plan, rows: list[Row]) -> bool:
    """Whether a run trains or waits to be started, by Slurm or by a `platform sweep` that is at work."""
    is_swept = is_locked(home.sweep(plan.sweep) / "lock")
    return is_going_on([row.state for row in rows], is_swept=is_swept, now=time.time())


def to_json(
    plan: Plan, rows: list[Row], allocation: Allocation | None = None, failures: Sequence[Failure] = ()
) -> dict[str, Any]:
    """Plain data for scripts."""
    return {
        "sweep": plan.sweep,
        "budget_gpu_hours": plan.budget_gpu_hours,
        "total_gpu_hours": plan.total_gpu_hours,
        "compute_gpu_hours": spent(rows),
        "compute_name": plan.compute_name,
        "seconds_left": rows_seconds_left(plan, rows, allocation),
        "stop": plan.stop,
        "runs": [_run_json(plan, row) for row in rows],
        "failures": [asdict(failure) for failure in failures],
    }


def _run_json(plan: Plan, row: Row) -> dict[str, Any]:
    left = seconds_left(row.state, plan.budget_gpu_hours) if row.state.state == State.RUNNING else None
    return {"variant": row.variant, "seed": row.seed, "id": row.id, **asdict(row.state), "seconds_left": left}
