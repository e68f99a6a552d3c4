"""What a file of the home folder has wrong is one message on the page."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ablations.errors import AblationsError
from ablations_dashboard.text.escape import in_markdown


@contextmanager
def errors_on_page() -> Iterator[None]:
    """Around a page, and around each fragment of it, which runs again alone; the page ends at the message."""
    try:
        yield
    except AblationsError as error:
        st.error(in_markdown(str(error)))
        st.stop()
