"""Documents on a page: every table is sorted by its numbers and can be downloaded, every figure can be zoomed."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from ablations.report.documents.blocks import Blocks, Cell, Figure, Folded, Heading, Table, Text
from ablations.report.figures.colours import written_in
from ablations.report.writers.page import heat_colour
from ablations.terminal.visible import made_visible
from ablations_dashboard.escape import in_markdown, with_code
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.links import PageAddress, show_run_links
from ablations_dashboard.widgets.table import show_table
from ablations_dashboard.widgets.theme import is_dark

LEAST_LEFT_OUT = 5
"""Number of rows up to which the browser counts every text in the width of a column."""
CHARACTER_PX, PADDING_PX = 8, 18
WIDEST_PX = 400
"""Limit on the width of a column; longer texts are prose, which a click shows whole."""


def show_document(
    blocks: Blocks,
    *,
    scope: str,
    sheets: Mapping[str, bytes] | None = None,
    runs: Mapping[str, PageAddress] | None = None,
) -> None:
    """Show the blocks. The names of their files begin with `scope`; `sheets` are downloads that replace the shown
    tables, by name. `runs` are the places of runs by name: warnings and errors about them have links."""
    for kind, several in groupby(blocks, lambda one: one.kind if isinstance(one, Text) else None):
        if kind is not None:
            said = [one for one in several if isinstance(one, Text)]
            _show_texts([one.text for one in said], kind)
            if kind in ("warning", "error"):
                show_run_links([name for one in said for name in one.runs], runs or {})
            continue
        for one in several:
            match one:
                case Heading(level=1):
                    st.title(in_markdown(one.text))
                case Heading(level=2):
                    st.subheader(in_markdown(one.text))
                case Heading():
                    st.markdown(f"**{in_markdown(one.text)}**")
                case Table():
                    if one.title:
                        st.markdown(f"**{in_markdown(one.title)}**")
                    csv = (sheets or {}).get(one.name) or texts_of(one).to_csv(index=False).encode()
                    show_table(table_frame(one), name=f"{scope}-{one.name}", csv=csv, columns=wide_columns(one))
                    if notes := " ".join(filter(None, one.notes)):
                        st.caption(with_code(notes))
                case Figure():
                    show_figure(one.chart, name=f"{scope}-{one.name}")
                    st.caption(with_code(one.caption))
                case Folded():
                    with st.expander(in_markdown(one.title)):
                        show_document(one.blocks, scope=scope, sheets=sheets, runs=runs)


def _show_texts(texts: list[str], kind: str) -> None:
    """Show paragraphs of a kind: warnings and errors in a box for all of them."""
    match kind:
        case "plain":
            st.markdown("\n\n".join(map(with_code, texts)))
        case "lead":
            st.markdown("\n\n".join(f"##### {with_code(text)}" for text in texts))
        case "note":
            st.caption("\n\n".join(map(with_code, texts)))
        case "warning":
            st.warning("  \n".join(map(with_code, texts)))
        case "error":
            st.error("  \n".join(map(with_code, texts)))


def table_frame(table: Table) -> Styler:
    """The table as a frame of numbers displayed as the cells' texts, so that a page sorts by number."""
    texts = texts_of(table)
    looks = pd.DataFrame([[_look(cell) for cell in row] for row in table.rows], columns=texts.columns)
    frame, shown = texts.copy(), {}
    for at, heading in enumerate(texts.columns):
        numbers = [row[at].number for row in table.rows]
        if known := [one for one in numbers if one is not None]:
            # A page shows no text of a missing number, so a text without one gets a number below the others.
            below = min(known) - max(1.0, abs(min(known)))
            filled = [below if one is None and said else one for one, said in zip(numbers, texts[heading], strict=True)]
            frame[heading] = _apart(filled)
            shown[heading] = dict(zip(frame[heading], texts[heading], strict=True))
    styled = frame.style.apply(lambda _: looks, axis=None)
    for heading, by_number in shown.items():
        styled.format(lambda number, by_number=by_number: by_number.get(number, ""), subset=[heading])
    return styled


def wide_columns(table: Table) -> dict[str, Any]:
    """Widths of columns with few long texts.

    In a column of more than five rows the browser leaves texts of more than twice the mean width out of the column's
    width, and cuts them off. Widths by the number of characters are rough, so 1.5 times the mean counts here.
    """
    texts, found = texts_of(table), {}
    for heading in texts.columns if len(texts) > LEAST_LEFT_OUT else ():
        widths = [PADDING_PX + CHARACTER_PX * len(text) for text in texts[heading]]
        if 1.5 * sum(widths) / len(widths) < max(widths) <= WIDEST_PX:
            found[heading] = st.column_config.Column(width=max(widths))
    return found


def texts_of(table: Table) -> pd.DataFrame:
    """The table as it is shown, with control characters made visible."""
    headings = pd.Index([made_visible(one.heading) for one in table.columns])
    return pd.DataFrame([[made_visible(cell.text.rstrip()) for cell in row] for row in table.rows], columns=headings)


def _apart(numbers: list[float | None]) -> list[float]:
    """The numbers, each a little larger than the one before it that is equal, so that each has a text of its own."""
    found: list[float] = []
    for number in numbers:
        one = np.nan if number is None else float(number)
        while number is not None and one in found:
            one = float(np.nextafter(one, np.inf))
        found.append(one)
    return found


def _look(cell: Cell) -> str:
    """The colours of a cell in CSS."""
    ink = written_in(cell.colour.lower(), is_dark=is_dark())
    heat = heat_colour(cell)
    return f"color: {ink}; font-weight: 600" if ink else f"background-color: {heat}" if heat else ""
