"""Links to other pages: in the same tab, and as addresses in a table, which open in a new one.

A page of Streamlit is known by its path alone, so a link needs no view.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import streamlit as st

from ablations_dashboard.escape import in_markdown
from ablations_dashboard.selection.url import in_url

PageAddress = Mapping[str, str]
"""What the URL of a page selects: `{"sweep": "loo", "run": "81d2f0a95c3b"}`."""
MOST_LINKED = 5
"""Limit on the runs that are linked one by one; the table of runs has the others."""


def show_link(path: str, label: str, place: PageAddress, *, icon: str | None = None) -> None:
    """Show a link to the page at `path`."""
    page = st.Page(lambda: None, title=path.capitalize(), url_path=path)
    st.page_link(page, label=label, query_params=dict(place), icon=icon)


def show_run_links(names: Sequence[str], runs: Mapping[str, PageAddress]) -> None:
    """Show a link to each of the named runs that has a place, and one to the table of runs if there are too many."""
    known = [name for name in dict.fromkeys(names) if name in runs]
    if not known:
        return
    with st.container(horizontal=True, gap="small"):
        for name in known[:MOST_LINKED]:
            show_link("run", in_markdown(name), runs[name], icon=":material/arrow_forward:")
        if len(known) > MOST_LINKED:
            where = {"sweep": runs[known[0]]["sweep"]}
            show_link("runs", f"all {len(known)} in the table of runs", where, icon=":material/table_rows:")


def address(path: str, place: PageAddress) -> str:
    """The relative address of a page for a new tab, with the token, since a new tab is a new session."""
    token = {"token": in_url("token")[0]} if in_url("token") else {}
    return f"{path}?{urlencode({**token, **place})}"
