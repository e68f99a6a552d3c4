"""Every sweep of a home folder on one line: its question, progress, cost, leader, and last activity.

>>> [line.state for line in sweep_lines(Home(Path("ablation-runs")))]
['6 of 6 done', '2 of 9 done, 1 running, 6 pending']
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.started_sweep import read_sweep
from ablations.home.state import State
from ablations.report.documents.blocks import Cell, Kind, Table, table_of_rows
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow, comparable_rate, rows_seconds_left, share, spent
from ablations.status.time_left import time_left_text
from ablations.text import MINUTE_S, compute_text, duration_text

NO_LEADER = "no evaluation yet"
NOT_COMPARABLE = "not comparable, since some runs have trained beyond the budget"
KINDS_OF_SWEEPS: dict[str, Kind] = {
    "scale": "name",
    "runs": "words",
    "highest pass rate": "words",
    "last activity": "name",
    "question": "prose",
}


@dataclass(frozen=True, kw_only=True)
class SweepLine:
    """One sweep in the list; a broken sweep has only a name and a problem.

    SweepLine(name="loo", scale="laptop", runs=9, states={"done": 9}, ...)
    """

    name: str
    problem: str = ""
    """The problem of a broken sweep; nothing else is known about it."""
    question: str = ""
    """The sweep file's `doc`."""
    scale: str = ""
    reference: str = ""
    variants: int = 0
    runs: int = 0
    states: dict[State, int]
    """Number of runs in each state."""
    compute_gpu_hours: float = 0.0
    """GPU-hours of all runs together; a run shared by two sweeps counts in both."""
    compute_name: str = ""
    last_sign: float = 0.0
    """Time of the last activity of any run, in seconds since 1970; 0 if no run has started."""
    share_spent: float = 0.0
    """Share of the budget of all runs that they have spent."""
    seconds_left: float | None = None
    """Time until the last run ends; None if unknown."""
    leader: str = ""
    """The variant with the highest last pass rate, mean over seeds: `loo-loss, 0.612`; or why there is none."""

    @property
    def state(self) -> str:
        """Counts of runs: `6 of 6 done`, `2 of 9 done, 1 running, 6 pending`."""
        others = [f"{number} {state}" for state, number in self.states.items() if state != State.DONE]
        return ", ".join([f"{self.states.get(State.DONE, 0)} of {self.runs} done", *others])

    @property
    def cost(self) -> str:
        """Compute of all runs with its unit, if that is known: `1,920 GPU-hours`."""
        unit = self.compute_name.rpartition(" ")[2]
        return f"{compute_text(self.compute_gpu_hours)} {unit if unit != 'compute' else ''}".rstrip()

    @property
    def outlook(self) -> str:
        """The time left as part of a sentence: `about 8.3 min left`, `under a minute left`; empty if unknown."""
        if self.seconds_left is None:
            return ""
        return "under a minute left" if self.seconds_left < MINUTE_S else f"about {self.time_left} left"

    @property
    def time_left(self) -> str:
        """The time left as text; empty if unknown."""
        return "" if self.seconds_left is None else time_left_text(self.seconds_left)


def sweep_lines(home: Home) -> Iterator[SweepLine]:
    """The sweeps started here, the most recent first."""
    for name in home.sweep_names():
        try:
            yield sweep_line(home, name)
        except AblationsError as error:
            yield SweepLine(name=name, problem=str(error), states={})


def sweep_line(home: Home, name: str) -> SweepLine:
    """One sweep; raises AblationsError if its plan cannot be read."""
    sweep = read_sweep(home, name)
    plan, rows = sweep.plan, run_rows(sweep)
    counts = Counter(row.state.state for row in rows)
    return SweepLine(
        name=name,
        question=plan.doc,
        scale=plan.scale,
        reference=plan.reference,
        variants=len(plan.variants),
        runs=len(rows),
        states={state: counts[state] for state in State if counts[state]},
        compute_gpu_hours=spent(rows),
        compute_name=plan.compute_name,
        last_sign=max((row.state.heartbeat for row in rows), default=0.0),
        share_spent=fmean([share(row.state, plan) for row in rows] or [0.0]),
        seconds_left=rows_seconds_left(plan, rows),
        leader=leader_of(plan, rows),
    )


def leader_of(plan: Plan, rows: Sequence[RunRow]) -> str:
    """The leader, `loo-loss, 0.612`, with the highest mean over seeds of the last pass rates."""
    rates: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        rate = comparable_rate(row.state, plan)
        if rate is not None:
            rates[row.variant].append(rate)
        elif row.state.pass_rate is not None:
            return NOT_COMPARABLE
    means = {variant: fmean(values) for variant, values in rates.items()}
    if not means:
        return NO_LEADER
    best = max(means, key=means.__getitem__)
    return f"{best}, {means[best]:.3f}"


def sweeps_table(lines: Sequence[SweepLine], *, now: float) -> Table:
    """One sweep or more with progress, cost and leader; `now` is a Unix time."""
    return table_of_rows([_cells(line, now) for line in lines], name="sweeps", kinds=KINDS_OF_SWEEPS)


def _cells(line: SweepLine, now: float) -> dict[str, Cell | str]:
    return {
        "sweep": line.name,
        "scale": line.scale,
        "variants": "" if line.problem else Cell(str(line.variants), line.variants),
        "runs": Cell("cannot be read", tone="bad") if line.problem else line.state,
        "compute": "" if line.problem else Cell(line.cost, line.compute_gpu_hours),
        "time left": line.time_left,
        "highest pass rate": line.leader,
        "last activity": Cell(ago(now - line.last_sign), line.last_sign) if line.last_sign else "",
        "question": line.question,
    }


def ago(seconds: float) -> str:
    """A time in the past: `now`, `12 min ago`, `3.5 days ago`."""
    return "now" if seconds < 30 else f"{duration_text(seconds, digits=2)} ago"
