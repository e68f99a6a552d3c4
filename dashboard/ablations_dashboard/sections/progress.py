"""Progress of the runs of a sweep."""

import pandas as pd
import streamlit as st

from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow, comparable_rate, rows_seconds_left, share
from ablations.status.table import summary
from ablations.status.time_left import time_left_text
from ablations.status.units_table import units_table
from ablations.terminal.visible import made_visible
from ablations.text import counted
from ablations_dashboard.escape import in_markdown
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.table import show_table

PROGRESS_COLUMNS = {
    "compute": st.column_config.ProgressColumn("compute", format="percent", min_value=0.0, max_value=1.0),
    "pass rate": st.column_config.NumberColumn("pass rate", format="%.3f"),
}


def show_progress(sweep: StartedSweep, rows: list[RunRow], *, is_live: bool) -> None:
    """Show a bar while runs train, and one line about runs that ended before their budget."""
    plan = sweep.plan
    if all(row.state.state is State.DONE for row in rows):
        return
    left = rows_seconds_left(plan, rows)
    ends = f"; about {time_left_text(left)} left" if left is not None else ""
    said = in_markdown(f"{summary(plan, rows)} of {counted(len(rows), 'run')}{ends}")
    if is_live:
        st.progress(sum(share(row.state, plan) for row in rows) / max(len(rows), 1), text=said)
    else:
        st.caption(f"{said}.")


def is_in_trouble(rows: list[RunRow]) -> bool:
    """True if a run has failed or gives no sign of life."""
    return any(row.state.state in (State.FAILED, State.STALE) for row in rows)


def show_runs(sweep: StartedSweep) -> None:
    """Show the list of runs, and of their processes."""
    plan, rows = sweep.plan, run_rows(sweep)
    show_table(progress_frame(plan, rows), name=f"{plan.sweep}-runs", columns=PROGRESS_COLUMNS)
    if processes := units_table(rows):
        st.markdown("**Processes**")
        show_document([processes], scope=plan.sweep)


def progress_frame(plan: Plan, rows: list[RunRow]) -> pd.DataFrame:
    """One line per run."""
    return pd.DataFrame(
        {
            "variant": row.variant,
            "seed": row.seed,
            "run": row.id,
            "state": str(row.state.state),
            "compute": share(row.state, plan),
            "pass rate": comparable_rate(row.state, plan),
            "step": row.state.step,
            "attempt": row.state.attempt,
            "message": made_visible(row.state.said),
        }
        for row in rows
    )
