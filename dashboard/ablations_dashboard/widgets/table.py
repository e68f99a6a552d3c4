"""A table on a page, with a download as CSV."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ablations_dashboard.widgets.download import offer_download


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
    offer_csv(plain if csv is None else csv, key=key, name=name)


def offer_csv(table: pd.DataFrame | bytes, *, key: str, name: str) -> None:
    """Show the link that downloads a table, or its content, as CSV with a line of headings."""
    content = table if isinstance(table, bytes) else lambda: table.to_csv(index=False).encode()
    offer_download("Table as CSV", content, f"{name}.csv", key=f"{key} csv")
