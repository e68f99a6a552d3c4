"""What each variant changed, what was found of it, and what would decide what is open."""

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from ablations.design.undecided import what_would_tell, what_would_tell_of
from ablations.fit.words import in_words
from ablations.report.colours import styles
from ablations.report.dark import ON_DARK
from ablations.report.headings import comparison_headings, under
from ablations.text import changes_text
from ablations.verdict.results import Results
from ablations.verdict.words import glossary, joint_note, line_of, method, sentence
from ablations_dashboard.reading.cache import comparison_csv
from ablations_dashboard.selection.variants import Shown
from ablations_dashboard.text.escape import in_markdown, visible
from ablations_dashboard.widgets.table import show_table

MOST_SENTENCES = 16
"""More are not read; the table has them all."""


def show_verdicts(results: Results, shown: Shown) -> None:
    """In words, as a table, and what the words mean."""
    plan = results.plan
    if results.comparison is None:
        st.info(in_markdown(f"No comparison yet: {plan.reference} has no fit. {'; '.join(results.reasons)}."))
        show_changes(results, shown)
        return
    st.header(f"Compared with {in_markdown(plan.reference)}", anchor="verdicts")
    said = [name for name in shown.focus if name != plan.reference][:MOST_SENTENCES]
    st.markdown("\n".join(f"- {in_markdown(said_of(results, name))}" for name in said))
    show_table(
        verdict_table(results, shown),
        key=f"verdicts {plan.sweep}",
        name=f"{plan.sweep}-verdicts",
        columns={"changes": st.column_config.TextColumn(width="medium")},
    )
    st.caption(in_markdown(" ".join(filter(None, (method(results), what_would_tell(results))))))
    with st.expander("All numbers"):
        lines = [line_of(results, results.variant(name)) for name in shown.names]
        show_table(
            pd.DataFrame(under(comparison_headings(plan), lines)).map(visible),
            key=f"numbers {plan.sweep}",
            name=plan.sweep,
            csv=comparison_csv(results),
        )
        if corrected := joint_note(results):
            st.caption(f'Intervals under "corrected" are {corrected}.')
    # A toggle, as its words are worth half a second where there are 200 runs, and few readers want them.
    if st.toggle("How far each fit can be believed", key="believed"):
        for run in results.runs:
            if run.variant in shown.focus:
                why = in_words(run.fit, f" {plan.compute_name}") if run.fit else run.reason
                st.markdown(f"**{in_markdown(run.name)}**: {in_markdown(why)}")
    with st.expander("What the verdicts mean"):
        for name, meaning in glossary(results):
            st.markdown(f"**{in_markdown(name)}**: {in_markdown(meaning)}.")


def said_of(results: Results, name: str) -> str:
    """What was found of a variant, and what it changes."""
    variant = results.variant(name)
    changes = changes_text(variant.overrides)
    return sentence(results, variant, line_of(results, variant)) + (f" It changes {changes}." if changes else "")


def show_changes(results: Results, shown: Shown) -> None:
    """What each variant changes, where nothing is compared yet."""
    lines = [
        {"variant": visible(name), "changes": visible(changes_text(results.variant(name).overrides))}
        for name in shown.names
    ]
    show_table(pd.DataFrame(lines), key=f"changes {results.plan.sweep}", name=f"{results.plan.sweep}-changes")


def verdict_table(results: Results, shown: Shown) -> Styler:
    """One line per variant, its name in its colour: what it changed, its verdicts, and what would decide."""
    reference, look = results.plan.reference, styles(results.plan)
    lines = []
    for name in shown.names:
        one, line = line_of(results, results.variant(name)), results.compared(name)
        lines.append(
            {
                "variant": visible(name),
                "changes": visible(one.changes),
                "level": one.level,
                f"level less {visible(reference)}'s": one.delta_level,
                "ceiling": one.ceiling,
                "A": one.A,
                f"A less {visible(reference)}'s": one.delta_A,
                "efficiency": one.efficiency,
                f"compute over {visible(reference)}'s": one.compute_ratio,
                "seeds": one.seeds,
                "what would decide": what_would_tell_of(line) if line else "",
            }
        )
    frame = pd.DataFrame(lines)
    colours = {visible(name): style.colour for name, style in look.items() if name in shown.focus}
    is_dark = st.context.theme.type == "dark"

    def ink(name: str) -> str:
        colour = colours.get(name)
        colour = ON_DARK.get(colour.lower(), colour) if colour and is_dark else colour
        return f"color: {colour}; font-weight: 600" if colour else ""

    return frame.style.map(ink, subset=["variant"])
