"""A figure on a page, in the colours of the theme and with downloads.

The camera of Plotly's bar makes a PNG or an SVG in the browser; nothing is sent anywhere.
"""

from functools import partial
from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from ablations.report.dark import in_dark
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.plotly_figure import draw_in_place

PICTURES = ("PNG", "SVG")


def choose_pictures() -> None:
    """Choose the file format that every figure's camera makes."""
    looks = {"widget": st.sidebar.radio, "horizontal": True}
    pick("pictures", "Save figures as", PICTURES, default="PNG", **looks)


def show_figure(figure: Figure, *, key: str, name: str, alt: str, narrow: Figure | None = None) -> None:
    """Draw a figure with its download. `key` stays the same over refreshes, `name` is for file names, `alt` is for
    screen readers.

    `narrow` has the same traces and the layout for a narrow place.
    """
    show_picture(figure, key=key, name=name, alt=alt, narrow=narrow)
    st.download_button(
        "Figure as HTML",
        partial(as_html, figure, name),
        f"{name}.html",
        "text/html",
        key=f"{key} html",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def show_picture(figure: Figure, *, key: str, name: str, alt: str, narrow: Figure | None = None) -> None:
    """Draw a figure without its download: one of many small ones."""
    drawn = [one if st.context.theme.type != "dark" else in_dark(one) for one in (figure, narrow or figure)]
    draw_in_place(drawn[0], narrow=drawn[1], key=key, config=camera(name), alt=alt)


def camera(name: str) -> dict[str, Any]:
    """Plotly's settings: no logo, no upload, a picture of twice the size on screen."""
    wanted = st.query_params.get("pictures", "PNG").lower()
    return {
        "displaylogo": False,
        "responsive": True,
        "showSendToCloud": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
        "toImageButtonOptions": {"format": "svg" if wanted == "svg" else "png", "filename": name, "scale": 2},
    }


def as_html(figure: Figure, name: str) -> bytes:
    """The figure as a separate page that needs no network, always in light colours."""
    settings = {"displaylogo": False, "showSendToCloud": False}
    page = figure.to_html(include_plotlyjs=True, full_html=True, config=settings, div_id="figure")
    return page.encode()
