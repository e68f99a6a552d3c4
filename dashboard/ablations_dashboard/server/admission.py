"""Who may see the pages: whoever has the token of the URL that `platform dashboard` printed.

Any user of a login node can reach 127.0.0.1, so a page without the token shows nothing: no name of a sweep, no list of
pages. The token is in the URL, where a reload finds it, and what it opened stays open in the session, as a change of
page empties the URL.
"""

import hmac
import os

import streamlit as st

from ablations.cli.serve import TOKEN_VARIABLE

ADMITTED = "admitted"
"""Key of the session's state."""


def require_token() -> None:
    """End the page here unless the URL has the token, or had it when this session began."""
    expected = os.environ.get(TOKEN_VARIABLE)
    if expected is None:
        st.error("These pages are served by `platform dashboard`, which prints a URL with a token.")
        st.stop()
    given = st.query_params.get("token")
    if given is not None:
        st.session_state[ADMITTED] = is_same(given, expected)
    if expected and not st.session_state.get(ADMITTED, False):
        st.error(
            "This page opens with the URL that `platform dashboard` printed when it was started: the token is in it."
        )
        st.stop()


def is_same(given: str, expected: str) -> bool:
    """Whether two tokens are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))
