"""A table on a page, with a download as CSV, and the link of every download."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

ROW_PX = 36
"""Height of a row."""
LONG_TABLE = 1000
"""Limit on the rows that are sent to the browser at once."""


def offer_download(label: str, content: str | bytes | Callable[[], bytes], file: str) -> None:
    """Show a link to download `content`; a function is called when the link is clicked. The name `file` must be unique
    on the page."""
    st.download_button(
        label, content, file, key=f"download {file}", type="tertiary", icon=":material/download:", on_click="ignore"
    )


def show_table(
    table: Any,
    *,
    name: str,
    columns: Mapping[str, Any] | None = None,
    csv: bytes | None = None,
    height: int | None = None,
) -> None:
    """Draw a data frame, styled or plain. `name` names its file and must be unique among the page's tables. `csv`
    replaces the shown table in the download, for example to include all digits. `height` in pixels is that of a longer
    table, by default of ten rows.
    """
    plain = table if isinstance(table, pd.DataFrame) else table.data
    tall = height if height is not None and ROW_PX * len(plain) > height else "auto"
    look = {"column_config": dict(columns or {}), "placeholder": "", "height": tall}
    # The browser asks for the rows of a long table as they are scrolled to; styled ones are sent at once.
    is_lazy = len(plain) > LONG_TABLE and plain is table
    st.dataframe(table, hide_index=True, key=f"table {name}", lazy=is_lazy, **look)
    offer_csv(plain if csv is None else csv, name=name)


def offer_csv(table: pd.DataFrame | bytes, *, name: str) -> None:
    """Show the link that downloads a table, or its content, as CSV with a line of headings."""
    content = table if isinstance(table, bytes) else lambda: table.to_csv(index=False).encode()
    offer_download("Table as CSV", content, f"{name}.csv")
