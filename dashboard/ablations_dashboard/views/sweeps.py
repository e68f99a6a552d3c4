"""All sweeps of the home folder, each with progress, cost, end and leader; read again while one is running."""

import time

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import read_sweep
from ablations.status.progress import run_rows
from ablations.status.sweeps import SweepLine, sweep_lines, sweeps_table
from ablations.terminal.visible import made_visible
from ablations.text import counted
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import REFRESH_S, may_change
from ablations_dashboard.selection.sweeps import no_sweep
from ablations_dashboard.selection.url import in_url, put_in_url, widget_key
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.links import show_link
from ablations_dashboard.widgets.message import errors_on_page

MOST_CARDS = 12
"""Limit on sweeps with a card; the table has all."""


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
    """Show the sweeps whose name or question contains the words."""
    found = [one for one in sweep_lines(home) if words in f"{one.name} {one.question}".lower()]
    if not found:
        st.info("No sweep matches this search.")
        return
    for one in found[:MOST_CARDS]:
        show_sweep_card(one)
    st.header("All sweeps", anchor="all")
    show_document([sweeps_table(found, now=time.time())], scope="home")
    st.caption(
        "The highest pass rate is the mean over seeds of a variant's last evaluation. The Compare page says whether it "
        "really leads."
    )


def show_sweep_card(line: SweepLine) -> None:
    """Show name, question, progress, cost, end and leader of a sweep."""
    with st.container(border=True):
        if line.problem:
            st.markdown(f"**{in_markdown(line.name)}**")
            st.error(with_code(line.problem))
            return
        label, where = f"**{in_markdown(line.name)}**", {"sweep": line.name}
        show_link("compare", label, where, icon=":material/monitoring:")
        if line.question:
            st.text(made_visible(line.question))
        ends = f"; {line.outlook}" if line.outlook else ""
        st.progress(line.share_spent, text=in_markdown(f"{line.state}{ends}"))
        variants = counted(line.variants, "variant")
        st.caption(in_markdown(f"{variants}; {line.cost} spent; highest pass rate: {line.leader}"))
