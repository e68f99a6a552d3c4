"""Ladder: the same study at several scales, and which differences carry from one to the next."""

import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from ablations.errors import AblationsError
from ablations.findings.scale_ladder import ScaleLadder, ladders_of, scale_ladder
from ablations.home.home import find_home
from ablations.home.started_sweep import read_sweep
from ablations.report.ladder import LADDER_LEGEND, ladder_figure, ladder_grid, ladder_sentences
from ablations.terminal.visible import made_visible
from ablations_dashboard.escape import in_code, with_code
from ablations_dashboard.reading.cache import load_results
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import show_table


@errors_on_page()
def show() -> None:
    """Choose a study with several scales and a question; show its ladder."""
    home = find_home(None)
    studies = ladders_of(home)
    st.title("Over scales")
    if not studies:
        st.info(
            f"No study in {in_code(str(home.path))} has two scales. `scales: [smoke, bench]` in a sweep file trains it "
            "at each."
        )
        st.stop()
    study = pick("study", "Study", tuple(studies), default=next(iter(studies)), widget=st.sidebar.selectbox)
    try:
        found = scale_ladder([load_results(read_sweep(home, name)) for name in studies[study]])
    except AblationsError as error:
        st.info(with_code(str(error)))
        st.stop()
    if not found.questions:
        st.info("No variant has an interval at two scales yet; two seeds at each scale give intervals.")
        st.stop()
    show_question(found, study)


def show_question(found: ScaleLadder, study: str) -> None:
    """Show the picture and the table of one question, and what they mean."""
    names = tuple(one.name for one in found.questions)
    chosen = pick("question", "Question", names, default=names[0], widget=st.segmented_control)
    question = next(one for one in found.questions if one.name == chosen)
    figure = ladder_figure(found, question)
    narrow = Figure(layout=figure.layout).update_layout(font_size=10, margin={"l": 55, "r": 48, "t": 12, "b": 50})
    show_figure(
        figure,
        narrow=narrow,
        name=f"{study}-ladder-{chosen}",
        alt="Difference of each variant from the reference against scale; the table below has the numbers",
    )
    st.caption(LADDER_LEGEND)
    grid = ladder_grid(found, question)
    table = pd.DataFrame([dict(zip(grid.headings, row, strict=True)) for row in grid.rows])
    table = table.rename(columns=made_visible).map(made_visible)
    show_table(table, name=f"{study}-ladder-{chosen}")
    for text in ladder_sentences(found):
        st.caption(with_code(text))
