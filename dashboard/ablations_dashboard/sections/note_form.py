"""A form that writes a note or tags on a sweep, a variant or a run, as `platform note` does."""

import time
from collections.abc import Mapping

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.notes import MAX_TEXT, NoteSubject
from ablations_dashboard.escape import in_markdown, with_code


def show_note_form(scope: str, subjects: Mapping[str, NoteSubject]) -> None:
    """Show a button that opens the form; `subjects` are what a note may be about, by name."""
    with st.popover("Write a note", icon=":material/edit_note:"), st.form(f"note {scope}", clear_on_submit=True):
        names = list(subjects)
        about = names[0] if len(names) == 1 else st.selectbox("About", names, key=f"note about {scope}")
        text = st.text_area("Note", key=f"note text {scope}", max_chars=MAX_TEXT)
        tags = st.text_input("Tags, side by side", key=f"note tags {scope}", placeholder="keep paper")
        if not st.form_submit_button("Save"):
            return
        try:
            if not (text.strip() or tags.split()):
                raise AblationsError("There is nothing to save: write a note, or tags.")
            subjects[about].add(text=text.strip() or None, tags=tuple(tags.split()), at=time.time())
        except AblationsError as error:
            st.error(with_code(str(error)))
            return
    st.toast(f"Saved the note on {in_markdown(about)}.")
    st.rerun(scope="app")  # also the sections that show the notes
