"""Campaigns: what a loop that improves by itself has tried, kept and discarded, and what of it is luck."""

import streamlit as st

from ablations.findings.campaign import campaign_names, read_campaign
from ablations.home.home import find_home
from ablations.report.documents.campaign import campaign_document
from ablations_dashboard.escape import in_code
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.message import errors_on_page


@errors_on_page()
def show() -> None:
    """Choose a campaign; show it."""
    home = find_home(None)
    names = tuple(campaign_names(home))
    st.title("Campaigns")
    if not names:
        command = f"platform campaign NAME --proposals 200 {home.option}"
        st.info(f"No campaign in {in_code(str(home.path))}. {in_code(command)} starts one.")
        st.stop()
    name = pick("campaign", "Campaign", names, default=names[0], widget=st.sidebar.selectbox)
    show_document(campaign_document(read_campaign(home, name)), scope=name)
