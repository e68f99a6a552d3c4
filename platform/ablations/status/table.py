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
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State
from ablations.report.documents.blocks import Cell, Kind, Table, Tone, table_of_rows
from ablations.report.documents.number_cells import number_cell
from ablations.report.writers.terminal_table import TONE_STYLES, TerminalTable
from ablations.status.failures import Failure
from ablations.status.rows import RunRow, comparable_rate, rows_seconds_left, share, spent
from ablations.status.time_left import end_text, seconds_left, time_left_text
from ablations.terminal.short_names import legend
from ablations.terminal.visible import made_visible
from ablations.text import cause, counted

if TYPE_CHECKING:
    from ablations.findings.remark import Remark

STATE_TONES: dict[State, Tone] = {
    State.DONE: "good",
    State.STOPPED: "",
    State.RUNNING: "",
    State.FAILED: "bad",
    State.TIMED_OUT: "bad",
    State.OUT_OF_MEMORY: "bad",
    State.NODE_FAILED: "bad",
    State.LOST: "bad",
    State.PREEMPTED: "mixed",
    State.STALE: "mixed",
    State.CANCELLED: "mixed",
    State.REQUEUED: "",
    State.QUEUED: "faint",
    State.PENDING: "faint",
}
"""States in the order of tables, with their tones."""
REMARK_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}
BELOW = ("collapsed", "fell", "below its start", "trained on nothing", "shortened", "health", "no gradient")
"""Kinds of remarks shown below the table; the other kinds are in the rows, or in the output of `platform compare`."""
COLUMN_KINDS: dict[str, Kind] = {
    "seed": "name",
    "run": "name",
    "state": "name",
    "compute": "number",
    "pass rate": "number",
    "attempt": "number",
    "left": "number",
    "message": "prose",
}
"""Columns of the table after the name of the variant."""
MOST_ROWS = 60
"""Maximum number of runs shown one by one."""
LOOKED_AT: tuple[frozenset[State], ...] = (
    frozenset({State.RUNNING, State.REQUEUED}),
    frozenset({State.STALE, State.PREEMPTED}),
    frozenset(state for state in State if state.is_failure),
)
"""States of the runs shown in a long table: training, in trouble, or failed."""
MOST_RUNS_NAMED = 4
"""Maximum number of runs named for one failure."""


def status_view(
    sweep: StartedSweep,
    rows: Sequence[RunRow],
    *,
    failures: Sequence[Failure],
    remarks: "Sequence[Remark]" = (),
    now: datetime,
    most_rows: int | None = MOST_ROWS,
    with_traces: bool = True,
) -> Group:
    """The table, and below it the remarks that are in no row, and the reasons why runs failed."""
    table = status_table(sweep, rows, failures=failures, now=now, most_rows=most_rows)
    said = [Text(made_visible(one.text), REMARK_STYLES[one.weight]) for one in remarks if one.kind in BELOW]
    failed = [failure_text(number, one, with_traces) for number, one in enumerate(failures, start=1)]
    return Group(TerminalTable.of(table), *said, *failed)


def status_table(
    sweep: StartedSweep,
    rows: Sequence[RunRow],
    *,
    failures: Sequence[Failure] = (),
    now: datetime | None = None,
    most_rows: int | None = MOST_ROWS,
) -> Table:
    """One line per run: state, fraction of the budget, pass rate, time left, and problems.

    If there are more than `most_rows` runs, only those training or in trouble are shown, and the others are counted.
    With `now`, the title forecasts the end.
    """
    plan = sweep.plan
    title = f"{plan.sweep}: {summary(plan, rows)}\n{outlook(sweep, rows, now=now)}"
    shown = worth_showing(rows, most_rows)
    number_of = {run: number for number, failure in enumerate(failures, start=1) for run in failure.runs}
    several_seeds = len({row.seed for row in rows}) > 1
    is_retried = any(row.state.attempt > 1 for row in shown)
    lines: list[dict[str, Cell | str]] = [
        {
            "variant": row.variant,
            "seed": str(row.seed) if several_seeds else "",
            "run": row.id,
            "state": _state_cell(row.state.state),
            "compute": number_cell(share(row.state, plan), ".0%"),
            "pass rate": number_cell(comparable_rate(row.state, plan), ".3f"),
            "attempt": str(row.state.attempt or "") if is_retried else "",
            "left": _left(row.state, plan) if row.state.state == State.RUNNING else "",
            "message": _message(row, number_of),
        }
        for row in shown
    ]
    for state, others in _others(rows, shown).items():
        counted_row: dict[str, Cell | str] = {"variant": f"{len(others):,} {'more' if shown else 'runs'}"}
        counted_row |= dict.fromkeys(COLUMN_KINDS, "")
        lines.append(counted_row | {"state": _state_cell(state), "message": _shared_message(others)})
    notes = tuple(legend(plan.axes)) if shown else ()
    return table_of_rows(lines, name="runs", kinds=COLUMN_KINDS, title=title, notes=notes)


def _state_cell(state: State) -> Cell:
    return Cell(str(state), tone=STATE_TONES[state])


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
    return {state: [row for row in others if row.state.state == state] for state in STATE_TONES if counts[state]}


def _shared_message(rows: Sequence[RunRow]) -> str:
    """The message that all of these waiting runs share, such as Slurm's reason; empty if they differ."""
    said = {cause(row.state.message) for row in rows} if rows[0].state.state.waits else set()
    return said.pop().removeprefix("job #_# ").removeprefix("job # ") if len(said) == 1 else ""


def summary(plan: Plan, rows: Sequence[RunRow]) -> str:
    """Counts and progress: `3 done, 2 running, 4 pending; 41% of the compute`."""
    counts = Counter(row.state.state for row in rows)
    states = ", ".join(f"{counts[state]} {state}" for state in STATE_TONES if counts[state])
    mean = sum(share(row.state, plan) for row in rows) / len(rows)
    return f"{states}; {mean:.0%} of the compute"


def outlook(sweep: StartedSweep, rows: Sequence[RunRow], *, now: datetime | None) -> str:
    """Compute so far and time left: `410 modelled GPU-hours so far; about 40 min left, until 15:20`."""
    seconds = rows_seconds_left(sweep.plan, rows)
    end = "" if now is None or seconds is None else f"; {end_text(seconds, now)}"
    four_digits = float(f"{spent(rows):.4g}")
    if idle := sum(not row.is_due for row in rows):
        end += f"; {counted(idle, 'pending run')} will start only with `{start_command(sweep)}`"
    return f"{four_digits:,.10g} {sweep.plan.compute_name} so far{end}"


def failure_text(number: int, failure: Failure, with_trace: bool) -> Text:
    """The error, the runs that failed with it, and the end of a log."""
    names = ", ".join(failure.names[:MOST_RUNS_NAMED])
    others = len(failure.names) - MOST_RUNS_NAMED
    text = Text(f"\n{number}  ")
    text.append(made_visible(failure.cause or failure.state), style=TONE_STYLES[STATE_TONES[failure.state]])
    text.append(f"\n   {counted(len(failure.runs), 'run')} {failure.state}: {names}")
    text.append(f" and {others} more" if others > 0 else "")
    if with_trace and failure.trace:
        text.append(f"\n   end of {failure.log}", style="dim")
        text.append("".join(f"\n     {made_visible(line)}" for line in failure.trace), style="dim")
    return text
