"""Admission to the pages by the token in the URL that `platform dashboard` printed.

Any user of a login node can reach 127.0.0.1, so a page without the token shows nothing: no name of a sweep, no list of
pages. The token is in the URL, so that a reload has it. A session once admitted stays admitted, since a change of page
empties the URL.
"""

import hmac
import os

import streamlit as st

from ablations.cli.serve import TOKEN_VARIABLE

ADMITTED = "admitted"
"""Session key of the admission."""


def require_token() -> None:
    """End the page unless the URL has the token, or had it earlier in this session."""
    expected = os.environ.get(TOKEN_VARIABLE)
    if expected is None:
        st.error("`platform dashboard` serves these pages and prints a URL with a token.")
        st.stop()
    given = st.query_params.get("token")
    if given is not None:
        st.session_state[ADMITTED] = is_same(given, expected)
    if expected and not st.session_state.get(ADMITTED, False):
        st.error(
            "To open this page, use the URL that `platform dashboard` printed when it started; it contains the token."
        )
        st.stop()


def is_same(given: str, expected: str) -> bool:
    """True if two tokens are equal; the duration does not reveal the length of their common part."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))
