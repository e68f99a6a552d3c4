"""Ladder: one study at several scales, and which differences carry over from one to the next."""

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.scale_ladder import ScaleLadder, ladders_of, scale_ladder
from ablations.home.home import find_home
from ablations.home.started_sweep import read_sweep
from ablations.report.documents.blocks import Text
from ablations.report.documents.ladder import ladder_sentences, question_blocks
from ablations_dashboard.escape import in_code, with_code
from ablations_dashboard.reading.cache import load_results
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.message import errors_on_page


@errors_on_page()
def show() -> None:
    """Choose a study with several scales and a question; show its ladder."""
    home = find_home(None)
    studies = ladders_of(home)
    st.title("Scale ladder")
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
        st.info("No variant has intervals at two scales yet; they need two seeds at each scale.")
        st.stop()
    show_question(found, study)


def show_question(found: ScaleLadder, study: str) -> None:
    """Show the picture and the table of one question, and what they mean."""
    names = tuple(one.name for one in found.questions)
    chosen = pick("question", "Question", names, default=names[0], widget=st.segmented_control)
    question = next(one for one in found.questions if one.name == chosen)
    notes = [Text(text=text, kind="note") for text in ladder_sentences(found)]
    show_document([*question_blocks(found, question), *notes], scope=study)
