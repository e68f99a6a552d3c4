"""Messages on a page: one for a damaged file of the home folder, and remarks by their weight: errors in red boxes,
warnings in yellow ones, and what is expected in a grey line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.remarks import WEIGHTS, Remark
from ablations.terminal.visible import made_visible
from ablations.text import counted
from ablations_dashboard.escape import with_code

MOST_IN_BOX = 2
"""Limit on the remarks of one weight above the figures; the others are folded."""


@contextmanager
def errors_on_page() -> Iterator[None]:
    """Wraps a page, and each of its fragments that rerun alone; an error becomes a message, and the page ends there."""
    try:
        yield
    except AblationsError as error:
        st.error(with_code(str(error)))
        st.stop()


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
