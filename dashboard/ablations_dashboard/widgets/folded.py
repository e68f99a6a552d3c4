"""A part of a page that is folded until it is opened, and is neither read nor drawn before."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from ablations_dashboard.selection.url import in_url, put_in_url, widget_key

OPEN_PARTS = "open"
"""The URL's parameter with the names of the open parts."""


def folded(name: str, label: str, draw: Callable[..., None], *given: Any, is_open: bool = False) -> None:
    """Show `label`, and below it what `draw(*given)` shows once it is opened; the URL has the open ones by `name`.

    `is_open` opens it at first.
    """
    key = widget_key(f"{name} folded")
    if key not in st.session_state:
        st.session_state[key] = is_open or name in in_url(OPEN_PARTS)
    part = st.expander(label, key=key, on_change="rerun")
    others = [one for one in in_url(OPEN_PARTS) if one != name]
    put_in_url(OPEN_PARTS, sorted([*others, name]) if part.open else others)
    if part.open:
        with part:
            draw(*given)
