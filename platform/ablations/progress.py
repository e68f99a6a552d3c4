"""Where every run of a sweep is: read from the run folders and Slurm, and shown live while the sweep runs."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from ablations.failures import Failure, group_failures
from ablations.home import Home
from ablations.plan import Plan
from ablations.rows import Row, is_going_on, rows_seconds_left, spent
from ablations.search.record import read_search
from ablations.slurm.states import SlurmStates
from ablations.state import ENDED, RunState, is_locked, read_state
from ablations.status_table import MOST_ROWS, outlook, status_view, summary
from ablations.steering.allocation import Allocation, read_allocation
from ablations.steering.stops import Stopped, read_stops
from ablations.time_left import seconds_left

QUIET_S = 30.0
"""Seconds between two lines when the output is not a terminal."""
LINES_BESIDE_ROWS = 10
"""Of a live table: title, head, counts of the runs not shown, and the prompt."""


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


def read_plan_allocation(home: Home, plan: Plan) -> Allocation | None:
    """How the plan's total is shared out so far; None where it has none."""
    total = plan.total_gpu_hours
    return None if total is None else read_allocation(home.sweep(plan.sweep), total)


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
        still = "; still training" if state.state == "running" else ""
        return replace(state, state="stopped", message=stopped.text(plan.reference) + still)
    if stopped and not stopped.ends_run:
        said.append(stopped.text(plan.reference))
    if allocation and allotted is not None:
        said.append(f"given {allotted:.4g} GPU-hours: {allocation.last_word(run_id)}")
    return replace(state, message="; ".join(said))


def all_ended(home: Home, plan: Plan, rows: list[Row]) -> bool:
    """Whether nothing is left to do: every run has ended, and no round of a total or trial is still to come."""
    allocation, search = read_plan_allocation(home, plan), read_search(home, plan)
    is_decided = allocation is None or allocation.finished != ""
    is_searched = not plan.search or (search is not None and search.is_complete)
    return all(row.state.state in ENDED for row in rows) and is_decided and is_searched


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
    left = seconds_left(row.state, plan.budget_gpu_hours) if row.state.state == "running" else None
    return {"variant": row.variant, "seed": row.seed, "id": row.id, **asdict(row.state), "seconds_left": left}


class Progress:
    """Shows a sweep while it runs: a live table in a terminal, elsewhere a line when something changed."""

    def __init__(self, home: Home, plan: Plan, console: Console) -> None:
        self._home, self._plan, self._console = home, plan, console
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._said, self._said_at = "", 0.0

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def follow(self, plan: Plan) -> None:
        """Show a plan that has grown in place of the one before."""
        self._plan = plan

    def update(self) -> list[Row]:
        """Read the states again, show and return them."""
        plan = self._plan
        rows, allocation = read_rows(self._home, plan), read_plan_allocation(self._home, plan)
        if self._live:
            self._live.update(self._view(rows, allocation))
            return rows
        states = " ".join(row.state.state for row in rows)
        now = time.monotonic()
        if states != self._said or now - self._said_at > QUIET_S:
            self._said, self._said_at = states, now
            text = f"{plan.sweep}: {summary(plan, rows, allocation)}; {outlook(plan, rows, allocation, now=clock())}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        return rows

    def _view(self, rows: list[Row], allocation: Allocation | None) -> Group:
        """As much as fits the terminal, which cannot scroll while it is live."""
        failures = group_failures(self._home, rows)
        most_rows = max(5, min(MOST_ROWS, self._console.height - LINES_BESIDE_ROWS - 3 * len(failures)))
        return status_view(
            self._plan,
            rows,
            allocation,
            failures=failures,
            now=clock(),
            most_rows=most_rows,
            with_traces=False,
        )


def clock() -> datetime:
    """The time of day where the user is."""
    return datetime.now().astimezone()
