"""The comparison as documents: a table of verdicts, the findings in words, every number, the fits, and the grid."""

from collections.abc import Iterable

import streamlit as st

from ablations.findings.order import in_order
from ablations.findings.results import Results
from ablations.fit.result import Fit
from ablations.fit.words import in_words
from ablations.report.documents.blocks import Blocks, Folded, Heading, Text, table_of_rows
from ablations.report.documents.comparison import all_numbers
from ablations.report.documents.comparison_tables import comparison_table
from ablations.report.documents.comparison_words import glossary, method, sentence
from ablations.report.documents.fit import fit_document
from ablations.report.documents.grid import grid_blocks
from ablations.report.documents.marks import marks_said
from ablations.report.documents.variant_row import VariantRow
from ablations.report.figures.colours import styles
from ablations.report.writers.csv_files import sheet_text
from ablations.text import counted
from ablations_dashboard.escape import with_code
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.widgets.document import show_document

MOST_SENTENCES = 16
"""Limit on the sentences shown; the table has all variants."""
MOST_IN_WORDS = 6
"""Limit on the doubted fits in words that are not folded."""


def show_table_of_verdicts(results: Results, shown: Shown) -> None:
    """Show the verdicts as a table; the changes while nothing is compared."""
    plan = results.plan
    if results.comparison is None:
        st.info(with_code("; ".join(results.reasons) or f"{plan.reference} has no fit."))
        rows = [{"variant": name, "changes": results.changes(name)} for name in shown.names]
        show_document([table_of_rows(rows, name="changes", kinds={"changes": "prose"})], scope=plan.sweep)
        return
    look = {name: style for name, style in styles(plan, shown.focus).items() if name in shown.focus}
    marks = marks_said(results)
    notes = [f"Marks: {marks}."] if marks else []
    table = comparison_table(results, names=best_first(results, shown), look=look, notes=notes)
    show_document([Heading(text=f"Compared with {plan.reference}"), table], scope=plan.sweep)


def show_words(results: Results, shown: Shown) -> None:
    """Show the findings in words, their method, and the meaning of the verdicts."""
    said = [name for name in shown.focus if name != results.plan.reference][:MOST_SENTENCES]
    blocks: Blocks = [
        *(Text(text=said_of(results, name)) for name in said),
        Text(text=method(results), kind="note"),
        *(Text(text=f"{name}: {meaning}.") for name, meaning in glossary(results)),
    ]
    show_document(blocks, scope=results.plan.sweep)


def show_numbers(results: Results, shown: Shown) -> None:
    """Show every number of the comparison."""
    sheet = sheet_text(results.rows()).encode()
    blocks = all_numbers(results, names=best_first(results, shown))
    show_document(blocks, scope=results.plan.sweep, sheets={"numbers": sheet})


def show_fits(results: Results, shown: Shown) -> None:
    """Show the fit of each run as a table, and in words those in doubt; those that leave A only roughly known are
    folded, since the table has their intervals."""
    runs = [run for run in results.runs if run.variant in shown.focus]
    fitted = [(run.name, run.fit) for run in runs if run.fit is not None]
    rough = [one for one in fitted if one[1].verdict == "roughly known" and not one[1].doubts_eq1]
    doubted = [one for one in fitted if one not in rough and (one[1].verdict != "resolved" or one[1].doubts_eq1)]
    more = doubted[MOST_IN_WORDS:]
    folded = {
        f"{counted(len(more), 'more doubted fit')} in words": more,
        f"In words: {counted(len(rough), 'fit')} with a roughly known ceiling": rough,
    }
    unit = f" {results.plan.compute_name}"

    def said(fits: Iterable[tuple[str, Fit]]) -> Blocks:
        return [Text(text=f"{name}: {in_words(fit, unit)}") for name, fit in fits]

    parts = [Folded(title=title, blocks=said(fits)) for title, fits in folded.items() if fits]
    show_document([*fit_document(runs), *said(doubted[:MOST_IN_WORDS]), *parts], scope=results.plan.sweep)


def show_grid(results: Results, _: Shown) -> None:
    """Show the cells of a grid for each question, its main effects, and pairs of changes; nothing without them."""
    show_document(grid_blocks(results), scope=results.plan.sweep)


def best_first(results: Results, shown: Shown) -> list[str]:
    """The shown variants, the highest level on top."""
    return [one.name for one in in_order(results, "level").variants if one.name in shown.names]


def said_of(results: Results, name: str) -> str:
    """The finding on a variant, and its changes."""
    said, changes = sentence(VariantRow(results=results, variant=results.variant(name))), results.changes(name)
    return f"{said} Changes: {changes}." if changes else said
