"""A link that downloads a file made by the page, without a rerun of its script."""

from collections.abc import Callable

import streamlit as st


def offer_download(label: str, content: str | bytes | Callable[[], bytes], file: str, *, key: str) -> None:
    """Show a link for `content`, which a function makes once the link is clicked; `file` is the file's name."""
    st.download_button(label, content, file, key=key, type="tertiary", icon=":material/download:", on_click="ignore")
