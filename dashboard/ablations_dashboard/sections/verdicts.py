"""The changes of each variant, the findings, and advice for settling open questions; the cells and main effects of a
grid, and pairs of changes, as in the report."""

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from ablations.findings.advice import advice
from ablations.findings.order import in_order
from ablations.findings.results import Results
from ablations.fit.words import in_words
from ablations.report.colours import ON_DARK, styles
from ablations.report.columns import ALL_NUMBERS, VERDICTS, Selection, columns
from ablations.report.csv_files import sheet_text
from ablations.report.grid_tables import HEAT_NOTE, grid_notes, grid_tables, tables_heading
from ablations.report.marks import marks_said
from ablations.report.words.comparison import ResultRow, glossary, joint_note, method, sentence
from ablations.terminal.visible import made_visible
from ablations_dashboard.escape import in_markdown, with_code
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.widgets.table import show_table
from ablations_dashboard.widgets.theme import is_dark

MOST_SENTENCES = 16
"""Limit on the sentences shown; the table has all variants."""


def show_table_of_verdicts(results: Results, shown: Shown) -> None:
    """Show the verdicts as a table, and advice for settling open questions; the changes while nothing is compared."""
    plan = results.plan
    if results.comparison is None:
        st.info(with_code("; ".join(results.reasons) or f"{plan.reference} has no fit."))
        changes = pd.DataFrame({"variant": shown.names, "changes": [results.changes(name) for name in shown.names]})
        show_table(changes.map(made_visible), name=f"{plan.sweep}-changes")
        return
    st.subheader(f"Compared with {in_markdown(plan.reference)}", anchor="verdicts")
    show_table(verdict_table(results, shown), name=f"{plan.sweep}-verdicts")
    marks = marks_said(results)
    if said := " ".join(filter(None, (f"Marks: {marks}." if marks else "", advice(results)))):
        st.caption(with_code(said))


def show_words(results: Results, shown: Shown) -> None:
    """Show the findings in words, their method, and the meaning of the verdicts."""
    said = [name for name in shown.focus if name != results.plan.reference][:MOST_SENTENCES]
    st.markdown("\n".join(f"- {in_markdown(said_of(results, name))}" for name in said))
    st.caption(with_code(method(results)))
    for name, meaning in glossary(results):
        st.markdown(f"**{in_markdown(name)}**: {in_markdown(meaning)}.")


def show_numbers(results: Results, shown: Shown) -> None:
    """Show every number of the comparison."""
    plan = results.plan
    show_table(
        table_of(results, ALL_NUMBERS, shown),
        name=plan.sweep,
        csv=sheet_text(results.rows()).encode(),
    )
    if corrected := joint_note(results):
        st.caption(f'Intervals under "corrected" are {corrected}.')


def show_fits(results: Results, shown: Shown) -> None:
    """Show how far each fit can be believed."""
    for run in results.runs:
        if run.variant in shown.focus:
            why = in_words(run.fit, f" {results.plan.compute_name}") if run.fit else run.reason
            st.markdown(f"**{in_markdown(run.name)}**: {in_markdown(why)}")


def said_of(results: Results, name: str) -> str:
    """The finding on a variant, and its changes."""
    variant = results.variant(name)
    changes = results.changes(name)
    said = sentence(ResultRow(results=results, variant=variant))
    return f"{said} Changes: {changes}." if changes else said


def table_of(results: Results, selection: Selection, shown: Shown) -> pd.DataFrame:
    """A row per shown variant, the highest level on top, with the columns of a selection."""
    headed, names = columns(results, selection), set(shown.names)
    rows = (ResultRow(results=results, variant=one) for one in in_order(results, "level").variants if one.name in names)
    table = [[made_visible(column.cell(row)) for column in headed] for row in rows]
    return pd.DataFrame(table, columns=pd.Index([made_visible(column.heading) for column in headed]))


def verdict_table(results: Results, shown: Shown) -> Styler:
    """One line per variant, its name in its colour: its differences with the marks of their verdicts, its changes."""
    look, frame = styles(results.plan, shown.focus), table_of(results, VERDICTS, shown)
    colours = {made_visible(name): style.colour for name, style in look.items() if name in shown.focus}
    dark = is_dark()

    def ink(name: str) -> str:
        colour = colours.get(name)
        colour = ON_DARK.get(colour.lower(), colour) if colour and dark else colour
        return f"color: {colour}; font-weight: 600" if colour else ""

    return frame.style.map(ink, subset=["variant"])


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
        show_table(coloured, name=name)
    st.caption(in_markdown(f"{grid_notes(results)} {HEAT_NOTE}"))
