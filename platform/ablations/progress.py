"""Where every run of a sweep is: the table of `platform status`, live while a sweep runs."""

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ablations.home import Home
from ablations.plan import Plan
from ablations.search.record import read_search
from ablations.slurm.states import SlurmStates
from ablations.state import ENDED, RunState, State, read_state
from ablations.steering.allocation import Allocation, read_allocation
from ablations.steering.stops import Stopped, read_stops

STYLES: dict[State, str] = {
    "done": "green",
    "stopped": "magenta",
    "running": "cyan",
    "failed": "red",
    "timed out": "red",
    "out of memory": "red",
    "node failed": "red",
    "lost": "red",
    "preempted": "yellow",
    "stale": "yellow",
    "cancelled": "yellow",
    "requeued": "cyan",
    "queued": "dim",
    "pending": "dim",
}
QUIET_S = 30.0
"""Seconds between two lines when the output is not a terminal."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of the sweep and its state."""

    variant: str
    seed: int
    id: str
    state: RunState


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


def to_json(plan: Plan, rows: list[Row]) -> dict[str, Any]:
    """Plain data for scripts."""
    runs = [{"variant": row.variant, "seed": row.seed, "id": row.id, **asdict(row.state)} for row in rows]
    return {
        "sweep": plan.sweep,
        "budget_gpu_hours": plan.budget_gpu_hours,
        "total_gpu_hours": plan.total_gpu_hours,
        "stop": plan.stop,
        "runs": runs,
    }


def status_table(plan: Plan, rows: list[Row], allocation: Allocation | None = None) -> Table:
    """One line a run: state, share of the budget, pass rate, attempts, why it failed, and what is wrong with it."""
    title = f"{plan.sweep}: {summary(plan, rows, allocation)}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("variant", "seed", "run", "state"):
        table.add_column(name)
    for name in ("compute", "pass rate", "attempt"):
        table.add_column(name, justify="right")
    table.add_column("message", overflow="fold")
    for row in rows:
        state = row.state
        table.add_row(
            row.variant,
            str(row.seed),
            row.id,
            f"[{STYLES[state.state]}]{state.state}[/]",
            f"{share(state, plan):.0%}",
            "" if state.pass_rate is None else f"{state.pass_rate:.3f}",
            str(state.attempt or ""),
            escape(state.said),
        )
    return table


def share(state: RunState, plan: Plan) -> float:
    """Compute spent as a share of the budget, at most 1."""
    return min(1.0, state.compute_gpu_hours / plan.budget_gpu_hours)


def summary(plan: Plan, rows: list[Row], allocation: Allocation | None = None) -> str:
    """`3 done, 2 running, 4 pending; 41 % of the compute`; of a total, the GPU-hours that were given out."""
    counts = Counter(row.state.state for row in rows)
    states = ", ".join(f"{counts[state]} {state}" for state in STYLES if counts[state])
    if plan.total_gpu_hours is not None:
        given = f"{sum(allocation.bought.values()):.4g} of " if allocation else ""
        return f"{states}; {given}{plan.total_gpu_hours:.4g} GPU-hours shared out"
    spent = sum(share(row.state, plan) for row in rows) / len(rows)
    return f"{states}; {spent:.0%} of the compute"


def left_to_train(plan: Plan, rows: list[Row], allocation: Allocation | None) -> float:
    """The most GPU-hours that may still be trained; of a total those not given out, and those given but not trained."""
    left = sum(
        max(0.0, plan.budget_gpu_hours - row.state.compute_gpu_hours) for row in rows if row.state.state != "stopped"
    )
    if allocation is None:
        return left
    allotted, bought = allocation.allotted, allocation.bought
    untrained = {row.id: allotted[row.id] - row.state.compute_gpu_hours for row in rows if row.id in allotted}
    return min(left, allocation.left(sum(min(bought[run], max(0.0, hours)) for run, hours in untrained.items())))


class Progress:
    """Shows a sweep while it runs: a live table in a terminal, elsewhere a line when something changed."""

    def __init__(self, home: Home, plan: Plan, console: Console) -> None:
        self._home, self._plan, self._console = home, plan, console
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._started = time.monotonic()
        self._left_before: float | None = None
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

    def update(self) -> None:
        """Read the states again and show them."""
        rows, allocation = read_rows(self._home, self._plan), read_plan_allocation(self._home, self._plan)
        left = self._time_left(rows, allocation)
        if self._live:
            table = status_table(self._plan, rows, allocation)
            table.caption = left
            self._live.update(table)
            return
        states = " ".join(row.state.state for row in rows)
        now = time.monotonic()
        if states != self._said or now - self._said_at > QUIET_S:
            self._said, self._said_at = states, now
            text = summary(self._plan, rows, allocation)
            self._console.print(f"{self._plan.sweep}: {text}{'; ' if left else ''}{left}")

    def _time_left(self, rows: list[Row], allocation: Allocation | None) -> str:
        left = left_to_train(self._plan, rows, allocation)
        if self._left_before is None:
            self._left_before = left
        elapsed, done = time.monotonic() - self._started, self._left_before - left
        if done <= 0.02 * len(rows) * self._plan.budget_gpu_hours:
            return ""
        return f"about {max(1, round(left * elapsed / done / 60))} min left"
