"""The common look of all figures: frame, font, grid, dotted lines at values, and literal user-written text."""

import html

import numpy as np
from plotly.graph_objects import Figure

GREY = "#8a8a8a"
FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif", "size": 13, "color": "#1f2328"}


def dress(figure: Figure, *, height: int) -> None:
    """Give a figure the common look."""
    figure.update_layout(
        height=height, template="none", font=FONT, paper_bgcolor="white", plot_bgcolor="white", hovermode="closest"
    )
    lines = {"gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "ticks": "outside", "ticklen": 4}
    figure.update_xaxes(showline=True, **lines)
    figure.update_yaxes(showline=True, **lines)


def mark(
    figure: Figure,
    value: float,
    *,
    axis: str = "x",
    height_of: str = "paper",
    text: str = "",
    side: str = "left",
    log: bool = False,
) -> None:
    """Draw a dotted line at a value of a horizontal axis, named at its foot, which is the `side` of the text;
    `height_of` is the reference for its height.
    """
    line = {"color": GREY, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=value, x1=value, y0=0, y1=1, xref=axis, yref=height_of, layer="below", line=line)
    if text:
        # Plotly places shapes by value but annotations by logarithm.
        place = float(np.log10(value)) if log else value
        corner = {"xanchor": side, "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": GREY}}
        figure.add_annotation(x=place, y=0, xref=axis, yref="paper", text=text, **corner)


def elided(text: str, most: int) -> str:
    """`text` without its middle if it is longer than `most` characters: `loss.type=…prompts=32`."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def plain(text: str) -> str:
    """`text` escaped so that Plotly shows it literally, since its labels interpret some HTML, including links."""
    return html.escape(text, quote=False)


def in_hover(text: str) -> str:
    """`text` escaped for a hover template, in which `%{` begins a number."""
    return plain(text).replace("{", "&#123;")
