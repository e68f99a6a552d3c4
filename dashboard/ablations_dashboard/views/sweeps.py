"""All sweeps of the home folder, each with progress, cost, end and leader; read again while one is running."""

import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

import pandas as pd
import streamlit as st

from ablations.errors import AblationsError
from ablations.home.home import Home, find_home
from ablations.home.plan import Plan
from ablations.home.started_sweep import read_sweep
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow, comparable_rate, rows_seconds_left, share
from ablations.status.sweeps import SweepLine, ago, sweep_line
from ablations.status.time_left import time_left_text
from ablations.terminal.visible import made_visible
from ablations.text import compute_text, counted
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import REFRESH_S, may_change
from ablations_dashboard.selection.sweeps import no_sweep
from ablations_dashboard.selection.url import in_url, put_in_url, widget_key
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import show_table

MOST_CARDS = 12
"""Limit on sweeps with a card; the table has all."""
NO_LEADER = "no evaluation yet"
NOT_COMPARABLE = "see Compare, since some runs have trained beyond the budget"


def page_of_compare() -> "st.Page":
    """The page that a card links to."""
    from ablations_dashboard.views import compare

    return st.Page(compare.show, title="Compare", url_path="compare")


@errors_on_page()
def show() -> None:
    """Show a card for each of the latest sweeps and a table of all."""
    home = find_home(None)
    st.title("Sweeps")
    st.caption(f"Home folder {in_code(str(home.path))}")
    if not home.sweep_names():
        st.info(no_sweep(home))
        st.stop()
    words = search_words()
    is_live = any(is_changing(home, name) for name in home.sweep_names())
    st.fragment(show_sweeps, run_every=REFRESH_S if is_live else None)(home, words)


def search_words() -> str:
    """The search words from the URL: parts of a name or a question."""
    key = widget_key("find")
    st.session_state.setdefault(key, next(iter(in_url("find")), ""))
    words = st.text_input("Find", key=key, placeholder="part of a name or a question")
    put_in_url("find", [words] if words else [])
    return words.lower()


def is_changing(home: Home, name: str) -> bool:
    """True if a run of the sweep trains; False for an unreadable sweep."""
    try:
        sweep = read_sweep(home, name)
        return may_change(sweep, run_rows(sweep), now=time.time())
    except AblationsError:
        return False


@errors_on_page()
def show_sweeps(home: Home, words: str) -> None:
    """Show the sweeps whose name or question has the words."""
    listed = [read_listed(home, name) for name in home.sweep_names()]
    found = [one for one in listed if words in f"{one.line.name} {one.line.question}".lower()]
    if not found:
        st.info("No sweep has these words.")
        return
    for one in found[:MOST_CARDS]:
        show_sweep_card(one)
    st.header("All sweeps", anchor="all")
    table = pd.DataFrame([table_line(one, now=time.time()) for one in found])
    show_table(table.drop(columns=[] if any(table["time left"]) else ["time left"]), name="sweeps")
    st.caption("The leader has the highest last pass rate, mean over seeds; Compare says what is decided.")


@dataclass(frozen=True, kw_only=True)
class ListedSweep:
    """A sweep of the list: `ListedSweep(line=line, leader="loo-loss, 0.612", done=0.5, left="20 min")`."""

    line: SweepLine
    leader: str = ""
    done: float = 0.0
    """Share of the budget that its runs have spent."""
    left: str = ""
    """The time left; empty if unknown."""


def read_listed(home: Home, name: str) -> ListedSweep:
    """A sweep of the list; for an unreadable sweep, the reason."""
    try:
        sweep = read_sweep(home, name)
        rows = run_rows(sweep)
        seconds = rows_seconds_left(sweep.plan, rows)
        return ListedSweep(
            line=sweep_line(home, name),
            leader=leader_of(sweep.plan, rows),
            done=fmean([share(row.state, sweep.plan) for row in rows] or [0.0]),
            left="" if seconds is None else time_left_text(seconds),
        )
    except AblationsError as error:
        return ListedSweep(line=SweepLine(name=name, problem=str(error), states={}))


def show_sweep_card(one: ListedSweep) -> None:
    """Show name, question, progress, cost, end and leader of a sweep."""
    line = one.line
    with st.container(border=True):
        if line.problem:
            st.markdown(f"**{in_markdown(line.name)}**")
            st.error(with_code(line.problem))
            return
        label, where = f"**{in_markdown(line.name)}**", {"sweep": line.name}
        st.page_link(page_of_compare(), label=label, query_params=where, icon=":material/monitoring:")
        if line.question:
            st.text(made_visible(line.question))
        ends = f"; about {one.left} left" if one.left else ""
        st.progress(one.done, text=in_markdown(f"{line.state}{ends}"))
        hours = f"{compute_text(line.compute_gpu_hours)} {line.compute_name.rpartition(' ')[2]}"
        variants = counted(line.variants, "variant")
        st.caption(in_markdown(f"{variants}; {hours} spent; highest pass rate: {one.leader}"))


def leader_of(plan: Plan, rows: list[RunRow]) -> str:
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


def table_line(one: ListedSweep, *, now: float) -> dict[str, object]:
    """A sweep as a line of the table."""
    line = one.line
    return {
        "sweep": made_visible(line.name),
        "runs": made_visible(line.problem) or line.state,
        "compute": float(f"{line.compute_gpu_hours:.4g}"),
        "counted in": line.compute_name,
        "time left": one.left,
        "highest pass rate": made_visible(one.leader),
        "last sign": ago(now - line.last_sign) if line.last_sign else "",
        "scale": line.scale,
        "variants": line.variants,
        "question": made_visible(line.question),
    }
