"""A form that writes a note or tags on a sweep, a variant or a run, as `platform note` does."""

import time
from collections.abc import Mapping

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.notes import MAX_TEXT, NoteSubject
from ablations_dashboard.escape import in_markdown, with_code
from scalerl.durable import error_text


def show_note_form(scope: str, subjects: Mapping[str, NoteSubject]) -> None:
    """Show a button that opens the form; `subjects` are what a note may be about, by name.

    A note that is not saved stays in the form, and a saved one leaves an empty form: fields with other keys.
    """
    saved = f"notes saved {scope}"
    key = f"{scope} {st.session_state.setdefault(saved, 0)}"
    with st.popover("Write a note", icon=":material/edit_note:"), st.form(f"note {key}"):
        names = list(subjects)
        about = names[0] if len(names) == 1 else st.selectbox("About", names, key=f"note about {key}")
        text = st.text_area("Note", key=f"note text {key}", max_chars=MAX_TEXT)
        tags = st.text_input("Tags, side by side", key=f"note tags {key}", placeholder="keep paper")
        if not st.form_submit_button("Save"):
            return
        try:
            if not (text.strip() or tags.split()):
                raise AblationsError("There is nothing to save: write a note, or tags.")
            subjects[about].add(text=text.strip() or None, tags=tuple(tags.split()), at=time.time())
        except AblationsError as error:
            st.error(with_code(str(error)))
            return
        except OSError as error:  # the folder has been deleted, or is not this user's
            st.error(with_code(f"The note is not saved. {error_text(error)}"))
            return
    st.session_state[saved] += 1
    st.toast(f"Saved the note on {in_markdown(about)}.")
    st.rerun(scope="app")  # also the sections that show the notes
