"""A figure on a page, in the colours of the theme and with downloads.

The camera of Plotly's bar makes a PNG in the browser; nothing is sent anywhere.
"""

from functools import partial
from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from ablations.report.dark import in_dark
from ablations_dashboard.widgets.download import offer_download
from ablations_dashboard.widgets.plotly_figure import draw_in_place


def show_figure(figure: Figure, *, key: str, name: str, alt: str, narrow: Figure | None = None) -> None:
    """Draw a figure with its download. `key` stays the same over refreshes, `name` is for file names, `alt` is for
    screen readers.

    `narrow` has the same traces and the layout for a narrow place.
    """
    show_picture(figure, key=key, name=name, alt=alt, narrow=narrow)
    offer_download("Figure as HTML", partial(_as_html, figure), f"{name}.html", key=f"{key} html")


def show_picture(figure: Figure, *, key: str, name: str, alt: str, narrow: Figure | None = None) -> None:
    """Draw a figure without its download: one of many small ones."""
    drawn = [one if st.context.theme.type != "dark" else in_dark(one) for one in (figure, narrow or figure)]
    draw_in_place(drawn[0], narrow=drawn[1], key=key, config=_camera(name), alt=alt)


def _camera(name: str) -> dict[str, Any]:
    """Plotly's settings: no logo, no upload, a picture of twice the size on screen."""
    return {
        "displaylogo": False,
        "responsive": True,
        "showSendToCloud": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
        "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2},
    }


def _as_html(figure: Figure) -> bytes:
    """The figure as a separate page that needs no network, always in light colours."""
    settings = {"displaylogo": False, "showSendToCloud": False}
    return figure.to_html(include_plotlyjs=True, full_html=True, config=settings, div_id="figure").encode()
