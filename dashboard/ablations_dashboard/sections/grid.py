"""The cells and main effects of a grid, and pairs of changes, as in the report."""

import pandas as pd
import streamlit as st

from ablations.findings.results import Results
from ablations.report.grid_tables import HEAT_NOTE, grid_notes, grid_tables, tables_heading
from ablations.terminal.visible import made_visible
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.text.escape import in_markdown
from ablations_dashboard.widgets.table import show_table


def show_grid(results: Results, _: Shown) -> None:
    """Show the cells of a grid for each question, its main effects, and pairs of changes; nothing without them."""
    tables = grid_tables(results)
    if not tables:
        return
    st.subheader(tables_heading(results), anchor="grid")
    for one in tables:
        st.markdown(f"**{in_markdown(one.title)}**")
        headings = pd.Index([made_visible(heading) for heading in one.headings])
        cells = pd.DataFrame([[made_visible(cell.rstrip()) for cell in row] for row in one.rows], columns=headings)
        styles = pd.DataFrame(one.colours, columns=headings).map(
            lambda colour: colour and f"background-color: {colour}"
        )
        coloured = cells.style.apply(lambda _, styles=styles: styles, axis=None)
        name = f"{results.plan.sweep}-{one.title.partition(',')[0]}"
        show_table(coloured, key=f"grid {name}", name=name)
    st.caption(in_markdown(f"{grid_notes(results)} {HEAT_NOTE}"))
