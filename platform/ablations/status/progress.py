"""The state of every run of a sweep, read from the run folders and Slurm."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State, state_with
from ablations.home.stops import Stopped, read_stops
from ablations.slurm.states import SlurmStates
from ablations.status.failures import Failure
from ablations.status.rows import RunRow, is_going_on, rows_seconds_left, spent
from ablations.status.time_left import seconds_left
from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus

if TYPE_CHECKING:
    from ablations.findings.remark import Remark


def run_rows(sweep: StartedSweep) -> list[RunRow]:
    """The state of every run of the plan: done with its whole budget, stopped if a rule ended it."""
    stops, slurm, is_swept = read_stops(sweep), SlurmStates(sweep.home), sweep.is_at_work
    rows = []
    for variant in sweep.plan.variants:
        for run in variant.runs:
            folder = sweep.run(run.id)
            status = folder.read_status()
            state = _state_in_sweep(sweep.plan, folder, status, stops.get(run.id), slurm)
            is_due = is_swept or state.state != State.PENDING
            row = RunRow(variant=variant.name, seed=run.seed, id=run.id, state=state, is_due=is_due, status=status)
            rows.append(row)
    return rows


def _state_in_sweep(
    plan: Plan, folder: RunFolder, status: RunStatus, stopped: Stopped | None, slurm: SlurmStates
) -> RunState:
    """The state of a run with the sweep's decisions, which the run's shared folder does not record."""
    state = slurm.state(folder.path.name, state_with(folder, status, plan.budget_gpu_hours))
    if stopped is None:
        return state
    said = [state.message] if state.message else []
    # Another sweep without the rule may have finished the run.
    if stopped.ends_run and state.compute_gpu_hours < plan.budget_gpu_hours:
        still = "; still training" if state.state == State.RUNNING else ""
        return replace(state, state=State.STOPPED, message=stopped.text(plan) + still)
    if not stopped.ends_run:
        said.append(stopped.text(plan))
    return replace(state, message="; ".join(said))


def is_still_going(sweep: StartedSweep, rows: list[RunRow]) -> bool:
    """True if a run is training or waiting to be started, by Slurm or by a `platform sweep` at work."""
    return is_going_on([row.state for row in rows], is_swept=sweep.is_at_work, now=time.time())


def to_json(
    plan: Plan, rows: list[RunRow], failures: Sequence[Failure] = (), remarks: "Sequence[Remark]" = ()
) -> dict[str, Any]:
    return {
        "sweep": plan.sweep,
        "budget_gpu_hours": plan.budget_gpu_hours,
        "compute_gpu_hours": spent(rows),
        "compute_name": plan.compute_name,
        "seconds_left": rows_seconds_left(plan, rows),
        "stop": plan.stop,
        "runs": [_run_json(plan, row) for row in rows],
        "failures": [asdict(failure) for failure in failures],
        "remarks": [remark.to_json() for remark in remarks],
    }


def _run_json(plan: Plan, row: RunRow) -> dict[str, Any]:
    left = seconds_left(row.state, plan.budget_gpu_hours)
    state = {**vars(row.state), "units": [asdict(unit) for unit in row.state.units]}
    return {"variant": row.variant, "seed": row.seed, "id": row.id, **state, "seconds_left": left}
