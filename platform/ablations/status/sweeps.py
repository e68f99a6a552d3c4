"""Every sweep of a home folder on one line: its question, progress, cost, and last sign of life.

>>> [line.state for line in sweep_lines(Home(Path("ablation-runs")))]
['6 of 6 done', '2 of 9 done, 1 running, 6 pending']
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.home.state import State
from ablations.status.progress import run_rows
from ablations.status.rows import spent
from ablations.terminal.listing import Column, Listing
from ablations.text import compute_text, duration_text

SWEEP_COLUMNS = (
    Column(heading="sweep"),
    Column(heading="scale"),
    Column(heading="variants", kind="number"),
    Column(heading="runs", kind="words"),
    Column(heading="compute", kind="number"),
    Column(heading="last sign"),
    Column(heading="question", kind="prose"),
)


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
    """GPU-hours of all runs together; a run that two sweeps share counts in both."""
    compute_name: str = ""
    last_sign: float = 0.0
    """Time of the last sign of life of any run, in seconds since 1970; 0 if no run has started."""

    @property
    def state(self) -> str:
        """Counts of runs: `6 of 6 done`, `2 of 9 done, 1 running, 6 pending`."""
        others = [f"{number} {state}" for state, number in self.states.items() if state != State.DONE]
        return ", ".join([f"{self.states.get(State.DONE, 0)} of {self.runs} done", *others])


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
    )


def sweeps_table(lines: list[SweepLine], *, now: float) -> Listing:
    """The table of `platform list`, without the problems; `now` is a Unix time."""
    table = Listing(columns=SWEEP_COLUMNS)
    for line in lines:
        if line.problem:
            table.add(line.name, "", "", ("cannot be read", "red"), "", "", "")
            continue
        table.add(
            line.name,
            line.scale,
            str(line.variants),
            line.state,
            f"{compute_text(line.compute_gpu_hours)} {line.compute_name.rpartition(' ')[2]}",
            ago(now - line.last_sign) if line.last_sign else "",
            line.question,
        )
    return table


def ago(seconds: float) -> str:
    """A time in the past: `now`, `12 min ago`, `3.5 days ago`."""
    return "now" if seconds < 30 else f"{duration_text(seconds, digits=2)} ago"
