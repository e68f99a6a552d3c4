"""Progress of the runs of a sweep."""

import streamlit as st

from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.status.rows import RunRow, rows_seconds_left, share, spent
from ablations.status.table import summary
from ablations.status.time_left import time_left_text
from ablations.text import compute_text, counted
from ablations_dashboard.escape import in_markdown


def show_progress(sweep: StartedSweep, rows: list[RunRow], *, is_live: bool) -> None:
    """Show a bar while runs train, and one line about compute spent and runs that ended before their budget."""
    plan = sweep.plan
    if all(row.state.state is State.DONE for row in rows):
        return
    left = rows_seconds_left(plan, rows)
    ends = f"; about {time_left_text(left)} left" if left is not None else ""
    cost = f"{compute_text(spent(rows))} {plan.compute_name} spent"
    said = in_markdown(f"{summary(plan, rows)} of {counted(len(rows), 'run')}, {cost}{ends}")
    if is_live:
        st.progress(sum(share(row.state, plan) for row in rows) / max(len(rows), 1), text=said)
    else:
        st.caption(f"{said}.")
