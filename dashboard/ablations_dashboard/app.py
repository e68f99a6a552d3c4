"""The script that Streamlit runs: the token, the list of pages, and the chosen one."""

import streamlit as st

from ablations_dashboard.server.preload import IMPORTING

with IMPORTING:
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

st.set_page_config(page_title="Ablations", layout="wide")
st.html(
    "<style>.stMainBlockContainer {padding-top: 4rem} .stMainBlockContainer h1 {font-size: 1.8rem; padding: 0} "
    ".stMainBlockContainer :is(h2, h3) {font-size: 1.4rem}</style>"
)
require_token()
page = st.navigation(
    [
        st.Page(sweeps.show, title="Sweeps", url_path="sweeps", default=True),
        st.Page(compare.show, title="Compare", url_path="compare"),
        st.Page(runs.show, title="Runs", url_path="runs"),
        st.Page(forecast.show, title="Forecast", url_path="forecast"),
        st.Page(ladder.show, title="Ladder", url_path="ladder"),
        st.Page(run.show, title="Run", url_path="run"),
        st.Page(recipes.show, title="Recipes", url_path="recipes"),
        st.Page(search.show, title="Search", url_path="search"),
        st.Page(campaigns.show, title="Campaigns", url_path="campaigns"),
        st.Page(paper.show, title="Paper", url_path="paper"),
    ]
)
st.set_page_config(page_title=f"{page.title} · Ablations")
restore(page.url_path)
page.run()
