"""Light or dark: the pages follow the reader's system."""

import streamlit as st


def is_dark() -> bool:
    """True if the page is shown in dark colours."""
    return st.context.theme.type == "dark"
