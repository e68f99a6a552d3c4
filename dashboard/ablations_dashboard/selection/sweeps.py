"""The choice of the sweep of a page, and of others beside it."""

from collections.abc import Iterator
from contextlib import suppress

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.several_sweeps import why_apart
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.nearest_name import did_you_mean
from ablations_dashboard.escape import in_code, in_markdown
from ablations_dashboard.selection.url import in_url, pick, pick_several


def choose_sweep() -> StartedSweep:
    """The sweep named in the URL, or the last started one; without it, or without any sweep, the page ends here with a
    message."""
    home = find_home(None)
    names = home.sweep_names()
    if not names:
        st.title("Ablations")
        st.info(no_sweep(home))
        st.stop()
    wanted = in_url("sweep")
    if wanted and wanted[0] not in names:
        st.title("Ablations")
        near = in_markdown(did_you_mean(wanted[0], names, "sweeps"))
        st.error(f"No sweep {in_code(wanted[0])} in {in_code(str(home.path))}; {near}")
        st.stop()
    name = pick("sweep", "Sweep", names, default=names[0], widget=st.sidebar.selectbox, is_kept=True)
    st.sidebar.caption(f"Home folder {in_code(str(home.path))}")
    return read_sweep(home, name)


def no_sweep(home: Home) -> str:
    """Advice for an empty home folder."""
    command = f"platform sweep sweeps/loo.yaml {home.option}"
    return f"No sweep in {in_code(str(home.path))}. {in_code(command)} makes one."


def choose_others(sweep: StartedSweep) -> list[StartedSweep]:
    """Choose sweeps to show together with this one, among those comparable with it."""
    found = {one.name: one for one in _comparable(sweep)}
    if not found:
        return []
    chosen = pick_several("with", "Compare with sweeps", list(found), scope=sweep.name, widget=st.sidebar.multiselect)
    return [found[name] for name in chosen]


def _comparable(sweep: StartedSweep) -> Iterator[StartedSweep]:
    for name in sweep.home.sweep_names():
        with suppress(AblationsError):  # an unreadable sweep, which the page of sweeps reports
            other = read_sweep(sweep.home, name)
            if name != sweep.name and not why_apart(sweep, other):
                yield other
