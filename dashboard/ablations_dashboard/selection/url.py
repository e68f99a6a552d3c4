"""The selection in the URL, so that a reload or a colleague sees the same page.

A change of page empties the URL; its content is also kept in the session and comes back with `restore`. A widget starts
with the value in the URL and then holds its value itself, untouched by a refresh. The value lasts for one page only,
since each page has its own widgets, which start from the URL.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

SELECTION_KEY = "selection"
"""Session key of the URL's parameters by name, each a list."""
PAGE_KEY = "page of the selection"
"""Session key of the page whose widgets the session holds."""
WIDGETS_KEY = "widgets of the selection"
"""Session key of the keys of these widgets."""
Widget = Callable[..., Any]
Picked = TypeVar("Picked", bound=str)


def restore(page: str) -> None:
    """Bring back the URL's content from before a change to this page, which empties the URL; every page calls this
    first.

    If a page is left while it is still running, Streamlit keeps its widgets' values under their keys and gives the next
    page's widgets none. These values are dropped here, so that the next page starts from the URL.
    """
    if st.session_state.get(PAGE_KEY) != page:
        for key in st.session_state.pop(WIDGETS_KEY, ()):
            st.session_state.pop(key, None)
        st.session_state[PAGE_KEY] = page
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    kept = st.session_state.get(SELECTION_KEY, {}) | given
    if kept != given:
        st.query_params.from_dict(kept)
    st.session_state[SELECTION_KEY] = kept


def in_url(name: str) -> list[str]:
    """The values of this parameter in the URL; empty if the URL lacks it."""
    return st.query_params.get_all(name)


def put_in_url(name: str, values: Sequence[str]) -> None:
    """Write a parameter into the URL, or remove it if there are no values."""
    kept: dict[str, list[str]] = st.session_state.setdefault(SELECTION_KEY, {})
    if list(values) == in_url(name):
        return
    if values:
        kept[name] = st.query_params[name] = list(values)
    else:
        kept.pop(name, None)
        st.query_params.pop(name, None)


def widget_key(key: str) -> str:
    """The key of a widget, recorded so that the session drops its value when another page is opened."""
    st.session_state.setdefault(WIDGETS_KEY, set()).add(key)
    return key


def pick(
    name: str,
    label: str,
    options: Sequence[Picked],
    *,
    default: Picked,
    scope: str = "",
    widget: Widget = st.selectbox,
    is_kept: bool = False,
    **looks: Any,
) -> Picked:
    """Choose one of the options; the URL has the choice unless it is the default and not `is_kept`.

    `scope` separates choices: another sweep has another choice.
    """
    key = widget_key(f"{name} {scope}")
    if st.session_state.get(key) not in options:
        wanted = in_url(name)
        st.session_state[key] = wanted[0] if wanted and wanted[0] in options else default
    value = widget(label, options, key=key, **looks)
    if value is None:  # a pill that was clicked a second time
        value = default
    put_in_url(name, [] if value == default and not is_kept else [value])
    return value


def pick_several(
    name: str, label: str, options: Sequence[str], *, scope: str = "", widget: Widget = st.multiselect, **looks: Any
) -> list[str]:
    """Choose any of the options, in their order; none by default. Options that no longer exist are dropped."""
    key = widget_key(f"{name} {scope}")
    before = st.session_state[key] if key in st.session_state else in_url(name)
    left = [option for option in dict.fromkeys(before) if option in options]
    # A value set by a script goes to the browser and undoes clicks made in the meantime, so only new values are set.
    if left != st.session_state.get(key):
        st.session_state[key] = left
    chosen = widget(label, options, key=key, **looks)
    put_in_url(name, [option for option in options if option in chosen])
    return [option for option in options if option in chosen]


def switch(name: str, label: str, *, widget: Widget = st.toggle, **looks: Any) -> bool:
    """A switch that is off unless the URL has `name=1`."""
    key = widget_key(f"{name} switch")
    st.session_state.setdefault(key, in_url(name) == ["1"])
    value = bool(widget(label, key=key, **looks))
    put_in_url(name, ["1"] if value else [])
    return value
