"""Remarks by their weight: errors in red boxes, warnings in yellow ones, and what is expected in a grey line."""

from collections.abc import Sequence

import streamlit as st

from ablations.findings.remarks import WEIGHTS, Remark
from ablations_dashboard.text.escape import in_markdown, visible

MOST_WARNINGS = 4
"""Limit on the yellow boxes; the others are folded."""


def show_remarks(remarks: Sequence[Remark]) -> None:
    """Show remarks, the gravest first; all red boxes are shown, and the notes share one grey line."""
    errors, warnings, notes = ([one.text for one in remarks if one.weight == weight] for weight in WEIGHTS)
    for text in errors:
        st.error(in_markdown(text))
    for text in warnings[:MOST_WARNINGS]:
        st.warning(in_markdown(text))
    if more := warnings[MOST_WARNINGS:]:
        with st.expander(f"{len(more)} more warnings"):
            st.text(visible("\n".join(more)))
    if notes:
        st.caption(in_markdown(" ".join(notes)))
