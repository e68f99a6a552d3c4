"""Light or dark, as the reader's system asks: the pages follow it."""

import streamlit as st


def is_dark() -> bool:
    """True if the page is shown in dark colours."""
    return st.context.theme.type == "dark"
