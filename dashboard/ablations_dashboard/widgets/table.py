"""A table on a page, with a download as CSV, and the link of every download."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st


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
) -> None:
    """Draw a data frame, styled or plain. `name` names its file and must be unique among the page's tables. `csv`
    replaces the shown table in the download, for example to include all digits.
    """
    st.dataframe(table, hide_index=True, column_config=dict(columns or {}), key=f"table {name}", placeholder="")
    plain = table if isinstance(table, pd.DataFrame) else table.data
    offer_csv(plain if csv is None else csv, name=name)


def offer_csv(table: pd.DataFrame | bytes, *, name: str) -> None:
    """Show the link that downloads a table, or its content, as CSV with a line of headings."""
    content = table if isinstance(table, bytes) else lambda: table.to_csv(index=False).encode()
    offer_download("Table as CSV", content, f"{name}.csv")
