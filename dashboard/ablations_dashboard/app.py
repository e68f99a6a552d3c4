"""The script that Streamlit runs: the token, the list of pages, and the chosen one."""

from types import ModuleType

import streamlit as st

from ablations_dashboard.server.preload import IMPORTING

with IMPORTING:
    from ablations.home.home import find_home
    from ablations_dashboard.reading.contents import empty_pages
    from ablations_dashboard.selection.url import restore
    from ablations_dashboard.server.admission import require_token
    from ablations_dashboard.views import (
        campaigns,
        compare,
        forecast,
        ladder,
        paper,
        recipes,
        run,
        runs,
        search,
        sweeps,
    )
    from ablations_dashboard.widgets.theme import follow_system

st.set_page_config(page_title="Ablations", layout="wide")
st.html(
    "<style>.stMainBlockContainer {padding-top: 4rem} .stMainBlockContainer h1 {font-size: 1.8rem; padding: 0 0 .3rem} "
    ".stMainBlockContainer :is(h2, h3) {font-size: 1.4rem} "
    '[data-testid="stCaptionContainer"] {color: inherit; opacity: .75}</style>'  # Streamlit's own has 3.9 : 1
)
require_token()
EMPTY = empty_pages(find_home(None))


def listed(title: str, view: ModuleType, *, is_first: bool = False) -> "st.Page":
    """The page of a view, which the list leaves out while it has nothing to show; its address works all the same."""
    path = title.lower()
    return st.Page(
        view.show, title=title, url_path=path, default=is_first, visibility="hidden" if path in EMPTY else "visible"
    )


page = st.navigation(
    [
        listed("Sweeps", sweeps, is_first=True),
        listed("Compare", compare),
        listed("Runs", runs),
        listed("Forecast", forecast),
        listed("Ladder", ladder),
        listed("Run", run),
        listed("Recipes", recipes),
        listed("Search", search),
        listed("Campaigns", campaigns),
        listed("Paper", paper),
    ]
)
st.set_page_config(page_title=f"{page.title} · Ablations")
restore(page.url_path)
page.run()
follow_system()
