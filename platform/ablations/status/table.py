"""The table of `platform status`: one line per run; for a long sweep only the runs that matter most."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from ablations.home.plan import Plan
from ablations.home.state import RunState, State
from ablations.status.failures import Failure
from ablations.status.rows import RunRow, comparable_rate, rows_seconds_left, share, spent
from ablations.status.time_left import end_text, seconds_left, time_left_text
from ablations.terminal.listing import Cell, Column, Kind, Listing
from ablations.terminal.short_names import legend
from ablations.terminal.visible import made_visible
from ablations.text import cause, counted

if TYPE_CHECKING:
    from ablations.findings.remarks import Remark

STATE_STYLES: dict[State, str] = {
    State.DONE: "green",
    State.STOPPED: "magenta",
    State.RUNNING: "cyan",
    State.FAILED: "red",
    State.TIMED_OUT: "red",
    State.OUT_OF_MEMORY: "red",
    State.NODE_FAILED: "red",
    State.LOST: "red",
    State.PREEMPTED: "yellow",
    State.STALE: "yellow",
    State.CANCELLED: "yellow",
    State.REQUEUED: "cyan",
    State.QUEUED: "dim",
    State.PENDING: "dim",
}
REMARK_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}
BELOW = ("collapsed", "trained on nothing", "shortened", "health", "no gradient")
"""Kinds of remarks shown below the table; the other kinds are in the rows, or in the output of `platform compare`."""
COLUMN_KINDS: dict[str, Kind] = {
    "compute": "number",
    "pass rate": "number",
    "attempt": "number",
    "left": "number",
    "message": "prose",
}
"""Columns that do not hold names."""
MOST_ROWS = 60
"""Maximum number of runs shown one by one."""
LOOKED_AT: tuple[frozenset[State], ...] = (
    frozenset({State.RUNNING, State.REQUEUED}),
    frozenset({State.STALE, State.PREEMPTED}),
    frozenset(state for state in State if state.is_failure),
)
"""States of the runs shown in a long table: training, in trouble, or failed."""
MOST_RUNS_NAMED = 4
"""Number of runs named for one failure."""


def status_view(
    plan: Plan,
    rows: Sequence[RunRow],
    *,
    failures: Sequence[Failure],
    remarks: "Sequence[Remark]" = (),
    now: datetime,
    most_rows: int | None = MOST_ROWS,
    with_traces: bool = True,
) -> Group:
    """The table, and below it the remarks that are in no row, and the reasons why runs failed."""
    table = status_table(plan, rows, failures=failures, now=now, most_rows=most_rows)
    said = [Text(made_visible(one.text), REMARK_STYLES[one.weight]) for one in remarks if one.kind in BELOW]
    failed = [failure_text(number, one, with_traces) for number, one in enumerate(failures, start=1)]
    return Group(table, *said, *failed)


def status_table(
    plan: Plan,
    rows: Sequence[RunRow],
    *,
    failures: Sequence[Failure] = (),
    now: datetime | None = None,
    most_rows: int | None = MOST_ROWS,
) -> Listing:
    """One line per run: state, fraction of the budget, pass rate, time left, and problems.

    If there are more than `most_rows` runs, only those training or in trouble are shown, and the others are counted.
    With `now`, the title forecasts the end.
    """
    title = f"{summary(plan, rows)}\n{outlook(plan, rows, now=now)}"
    shown = worth_showing(rows, most_rows)
    columns = _columns(plan, rows, shown, failures)
    table = Listing(
        columns=[Column(heading=name, kind=COLUMN_KINDS.get(name, "name")) for name in columns],
        title=f"{plan.sweep}: {title}",
        notes=legend(plan.axes) if shown else (),
    )
    for cells in zip(*columns.values(), strict=True):
        table.add(*cells)
    for state, others in _others(rows, shown).items():
        told: dict[str, Cell] = {
            "variant": f"{len(others):,} {'more' if shown else 'runs'}",
            "state": _styled(state),
            "message": _shared_message(others),
        }
        table.add(*(dict.fromkeys(columns, "") | told).values())
    return table


def _columns(
    plan: Plan,
    rows: Sequence[RunRow],
    shown: Sequence[RunRow],
    failures: Sequence[Failure],
) -> dict[str, list[Cell]]:
    """The cells of each column; empty columns are dropped to leave room for the messages."""
    number_of = {run: number for number, failure in enumerate(failures, start=1) for run in failure.runs}
    states = [row.state for row in shown]
    columns: dict[str, list[Cell]] = {"variant": [row.variant for row in shown]}
    if shown and len({row.seed for row in rows}) > 1:
        columns["seed"] = [str(row.seed) for row in shown]
    if shown:
        columns["run"] = [row.id for row in shown]
    columns["state"] = [_styled(state.state) for state in states]
    if shown:
        columns["compute"] = [f"{share(state, plan):.0%}" for state in states]
    rates = [comparable_rate(state, plan) for state in states]
    if any(rate is not None for rate in rates):
        columns["pass rate"] = ["" if rate is None else f"{rate:.3f}" for rate in rates]
    if any(state.attempt > 1 for state in states):
        columns["attempt"] = [str(state.attempt or "") for state in states]
    if any(state.state == State.RUNNING for state in states):
        columns["left"] = [_left(state, plan) for state in states]
    columns["message"] = [_message(row, number_of) for row in shown]
    return columns


def _styled(state: State) -> Cell:
    return str(state), STATE_STYLES[state]


def _left(state: RunState, plan: Plan) -> str:
    seconds = seconds_left(state, plan.budget_gpu_hours)
    return "" if seconds is None else time_left_text(seconds)


def _message(row: RunRow, number_of: Mapping[str, int]) -> str:
    """The message about a run; a failure described below the table is only referred to."""
    number = number_of.get(row.id)
    return (row.state if number is None else replace(row.state, message=f"see {number} below")).said


def worth_showing(rows: Sequence[RunRow], most: int | None = MOST_ROWS) -> list[RunRow]:
    """All rows if there are few; else at most that number of the rows training or in trouble, in the plan's order."""
    if most is None or len(rows) <= most:
        return list(rows)
    found = [[index for index, row in enumerate(rows) if row.state.state in states] for states in LOOKED_AT]
    # Take turns, so that many runs of one kind do not hide the other kinds.
    in_turns = [index for turn in zip_longest(*found) for index in turn if index is not None]
    return [rows[index] for index in sorted(in_turns[:most])]


def _others(rows: Sequence[RunRow], shown: Sequence[RunRow]) -> dict[State, list[RunRow]]:
    ids = {row.id for row in shown}
    others = [row for row in rows if row.id not in ids]
    counts = Counter(row.state.state for row in others)
    return {state: [row for row in others if row.state.state == state] for state in STATE_STYLES if counts[state]}


def _shared_message(rows: Sequence[RunRow]) -> str:
    """The message that all of these waiting runs share, such as Slurm's reason; empty if they differ."""
    said = {cause(row.state.message) for row in rows} if rows[0].state.state.waits else set()
    return said.pop().removeprefix("job #_# ").removeprefix("job # ") if len(said) == 1 else ""


def summary(plan: Plan, rows: Sequence[RunRow]) -> str:
    """Counts and progress: `3 done, 2 running, 4 pending; 41% of the compute`."""
    counts = Counter(row.state.state for row in rows)
    states = ", ".join(f"{counts[state]} {state}" for state in STATE_STYLES if counts[state])
    mean = sum(share(row.state, plan) for row in rows) / len(rows)
    return f"{states}; {mean:.0%} of the compute"


def outlook(plan: Plan, rows: Sequence[RunRow], *, now: datetime | None) -> str:
    """Compute so far and time left: `410 modelled GPU-hours so far; about 40 min left, until 15:20`."""
    seconds = rows_seconds_left(plan, rows)
    end = "" if now is None or seconds is None else f"; {end_text(seconds, now)}"
    four_digits = float(f"{spent(rows):.4g}")
    if idle := sum(not row.is_due for row in rows):
        end += f"; {counted(idle, 'pending run')} will start only with `{plan.command or 'platform sweep FILE'}`"
    return f"{four_digits:,.10g} {plan.compute_name} so far{end}"


def failure_text(number: int, failure: Failure, with_trace: bool) -> Text:
    """The error, the runs that failed with it, and the end of a log."""
    names = ", ".join(failure.names[:MOST_RUNS_NAMED])
    others = len(failure.names) - MOST_RUNS_NAMED
    text = Text(f"\n{number}  ")
    text.append(made_visible(failure.cause or failure.state), style=STATE_STYLES[failure.state])
    text.append(f"\n   {counted(len(failure.runs), 'run')} {failure.state}: {names}")
    text.append(f" and {others} more" if others > 0 else "")
    if with_trace and failure.trace:
        text.append(f"\n   end of {failure.log}", style="dim")
        text.append("".join(f"\n     {made_visible(line)}" for line in failure.trace), style="dim")
    return text


NONE_TO_SHOW = "no processes to show: no run is training on the wall clock"
STYLES_OF_UNITS = {"at work": "green", "starting": "dim", "catching up": "cyan", "gone": "red"}


def unit_lines(rows: Sequence[RunRow]) -> list[dict[str, str]]:
    """One line per process: `{"variant": "scalerl", "process": "generator 3", "node": "n2", "state": "at work"}`."""
    return [
        {
            "variant": row.name if len({other.seed for other in rows}) > 1 else row.variant,
            "process": unit.unit,
            "node": unit.node,
            "state": unit.state,
            "does": unit.doing.replace("_", " "),
            "deaths": str(unit.deaths or ""),
        }
        for row in rows
        for unit in row.state.units
    ]


def units_table(rows: Sequence[RunRow]) -> Listing | Text:
    """The processes as a table for a terminal."""
    lines = unit_lines(rows)
    if not lines:
        return Text(NONE_TO_SHOW)
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    table = Listing(columns=[Column(heading=name, kind="number" if name == "deaths" else "name") for name in columns])
    for line in lines:
        told: dict[str, Cell] = {name: line[name] for name in columns}
        table.add(*(told | {"state": (line["state"], STYLES_OF_UNITS.get(line["state"], ""))}).values())
    return table
