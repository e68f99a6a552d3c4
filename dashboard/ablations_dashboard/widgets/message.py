"""The message on a page for a damaged file of the home folder."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ablations.errors import AblationsError
from ablations_dashboard.escape import with_code


@contextmanager
def errors_on_page() -> Iterator[None]:
    """Wraps a page, and each of its fragments that rerun alone; an error becomes a message, and the page ends there."""
    try:
        yield
    except AblationsError as error:
        st.error(with_code(str(error)))
        st.stop()
