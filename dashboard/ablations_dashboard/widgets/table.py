"""A table on a page, with a download as CSV."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st


def show_table(
    table: Any,
    *,
    key: str,
    name: str,
    columns: Mapping[str, Any] | None = None,
    csv: bytes | None = None,
) -> None:
    """Draw a data frame, styled or plain. `csv` replaces the shown table in the download, for example to include all
    digits.
    """
    st.dataframe(table, hide_index=True, column_config=dict(columns or {}), key=key)
    plain = table if isinstance(table, pd.DataFrame) else table.data
    st.download_button(
        "Table as CSV",
        partial(as_csv, plain) if csv is None else csv,
        f"{name}.csv",
        "text/csv",
        key=f"{key} csv",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def as_csv(table: pd.DataFrame) -> bytes:
    """The table as CSV, with a line of headings."""
    return table.to_csv(index=False).encode()
