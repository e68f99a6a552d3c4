"""Remarks by their weight: errors in red boxes, warnings in yellow ones, and what is expected in a grey line."""

from collections.abc import Sequence

import streamlit as st

from ablations.findings.remarks import WEIGHTS, Remark
from ablations.terminal.visible import made_visible
from ablations.text import counted
from ablations_dashboard.text.escape import with_code

MOST_IN_BOX = 2
"""Limit on the remarks of one weight above the figures; the others are folded."""


def show_remarks(remarks: Sequence[Remark]) -> None:
    """Show remarks, the gravest first: one box for each weight, and the notes as a grey line."""
    errors, warnings, notes = ([one.text for one in remarks if one.weight == weight] for weight in WEIGHTS)
    for texts, box, name in ((errors, st.error, "error"), (warnings, st.warning, "warning")):
        if texts:
            box("  \n".join(with_code(text) for text in texts[:MOST_IN_BOX]))
        if more := texts[MOST_IN_BOX:]:
            with st.expander(counted(len(more), f"more {name}")):
                st.text(made_visible("\n".join(more)))
    if notes:
        st.caption(with_code(" ".join(notes)))
