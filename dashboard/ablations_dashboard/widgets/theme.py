"""Light or dark: the pages follow the reader's system, also while they are open."""

from functools import cache
from typing import Any

import streamlit as st
from streamlit.components import v2

WATCH = """
export default function ({ setTriggerValue }) {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTimeout(() => setTriggerValue("system", system.matches), DRAWN_MS);  // once Streamlit has
  system.addEventListener("change", follow);
  return () => system.removeEventListener("change", follow);
}
"""
DRAWN_MS = 200
"""Time in which Streamlit has taken the other colours; the script that then runs is told of them."""


def is_dark() -> bool:
    """True if the page is shown in dark colours."""
    return st.context.theme.type == "dark"


@cache
def _component() -> Any:
    return v2.component("ablations.system_theme", js=WATCH.replace("DRAWN_MS", str(DRAWN_MS)))


def follow_system() -> None:
    """Run the page again when the system turns light or dark, so that figures and tables change their colours too."""
    _component()(key="theme", on_system_change=lambda: None)
