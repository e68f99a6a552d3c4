"""Where every run of a sweep is: the table of `platform status`, live while a sweep runs."""

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ablations.home import Home
from ablations.plan import Plan
from ablations.state import RunState, read_state

STYLES = {
    "done": "green",
    "running": "cyan",
    "failed": "red",
    "stale": "yellow",
    "cancelled": "yellow",
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
    """The state of every run of the plan."""
    return [
        Row(variant=variant.name, seed=run.seed, id=run.id, state=read_state(home.run(run.id), plan.budget_gpu_hours))
        for variant in plan.variants
        for run in variant.runs
    ]


def to_json(plan: Plan, rows: list[Row]) -> dict[str, Any]:
    """Plain data for scripts."""
    runs = [{"variant": row.variant, "seed": row.seed, "id": row.id, **asdict(row.state)} for row in rows]
    return {"sweep": plan.sweep, "budget_gpu_hours": plan.budget_gpu_hours, "runs": runs}


def status_table(plan: Plan, rows: list[Row]) -> Table:
    """One line a run: state, share of the budget, pass rate, attempts, and why it failed."""
    table = Table(title=f"{plan.sweep}: {summary(plan, rows)}", title_justify="left", box=None, pad_edge=False)
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
            escape(state.message),
        )
    return table


def share(state: RunState, plan: Plan) -> float:
    """Compute spent as a share of the budget, at most 1."""
    return min(1.0, state.compute_gpu_hours / plan.budget_gpu_hours)


def summary(plan: Plan, rows: list[Row]) -> str:
    """`3 done, 2 running, 4 pending; 41 % of the compute`."""
    counts = Counter(row.state.state for row in rows)
    states = ", ".join(f"{counts[state]} {state}" for state in STYLES if counts[state])
    spent = sum(share(row.state, plan) for row in rows) / len(rows)
    return f"{states}; {spent:.0%} of the compute"


class Progress:
    """Shows a sweep while it runs: a live table in a terminal, elsewhere a line when something changed."""

    def __init__(self, home: Home, plan: Plan, console: Console) -> None:
        self._home, self._plan, self._console = home, plan, console
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._started = time.monotonic()
        self._share_before: float | None = None
        self._said, self._said_at = "", 0.0

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def update(self) -> None:
        """Read the states again and show them."""
        rows = read_rows(self._home, self._plan)
        left = self._time_left(rows)
        if self._live:
            table = status_table(self._plan, rows)
            table.caption = left
            self._live.update(table)
            return
        states = " ".join(row.state.state for row in rows)
        now = time.monotonic()
        if states != self._said or now - self._said_at > QUIET_S:
            self._said, self._said_at = states, now
            self._console.print(f"{self._plan.sweep}: {summary(self._plan, rows)}{'; ' if left else ''}{left}")

    def _time_left(self, rows: list[Row]) -> str:
        spent = sum(share(row.state, self._plan) for row in rows)
        if self._share_before is None:
            self._share_before = spent
        elapsed, done = time.monotonic() - self._started, spent - self._share_before
        if done <= 0.02 * len(rows):
            return ""
        return f"about {max(1, round((len(rows) - spent) * elapsed / done / 60))} min left"
