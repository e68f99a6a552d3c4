"""The common look of all figures: frame, font, grid, dotted lines at values, literal user-written text, and labels at
the right edge of the curves, moved apart so that none covers another."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure
from scipy.optimize import isotonic_regression

from ablations.fit.asymptote import AsymptoteEstimate

GREY = "#8a8a8a"
FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif", "size": 13, "color": "#1f2328"}
FIGURE_SETTINGS = {"displaylogo": False, "responsive": True, "showSendToCloud": False}
"""Plotly's settings without the button that uploads a figure to its cloud."""
LEADER_PX = 20
"""Length of the line from the end of a curve to its label, across."""
_LEADER = {"type": "line", "xref": "paper", "xsizemode": "pixel", "xanchor": 1, "yref": "y", "x0": 2, "x1": LEADER_PX}
_LABEL = {"xref": "paper", "x": 1, "xshift": LEADER_PX + 4, "xanchor": "left", "yref": "y", "yanchor": "middle"}
_LABEL |= {"showarrow": False, "borderpad": 0}


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


def leader(height: float, place: float, colour: str) -> dict[str, Any]:
    """Plotly's line from a curve that ends at `height` to its label at `place`."""
    return _LEADER | {"y0": height, "y1": place, "line": {"color": colour, "width": 1}}


def end_label(text: str, place: float, *, colour: str, size: int, yshift: float = 0) -> dict[str, Any]:
    """Plotly's text at the right edge of a figure, `yshift` pixels above `place`."""
    return _LABEL | {"text": text, "y": place, "yshift": yshift, "font": {"color": colour, "size": size}}


def asymptote_text(estimate: AsymptoteEstimate | None) -> str:
    """A for a figure: `A 0.612 [0.590, 0.633]`, `A ≥ 0.59`, `no rise`; `no fit` without an estimate.

    >>> asymptote_text(AsymptoteEstimate(A=0.7, lo=0.59, hi=None, verdict="lower bound only"))
    'A ≥ 0.59'
    """
    return str(estimate).replace(">=", "≥") if estimate else "no fit"


def moved_apart(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places between `low` and `high`, `gap` or more apart, near the wanted places and in their order.

    Neighbours that are too close form a group around the mean of their wanted places: isotonic regression of what is
    left after a gap for each label below. If there is no room for all at `gap`, all places are evenly spaced.

    >>> moved_apart([0.5, 0.5, 1.0], gap=0.25, low=0.0, high=1.0)
    [0.375, 0.625, 1.0]
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    steps = min(gap, (high - low) / max(len(wanted) - 1, 1)) * np.arange(len(wanted))
    found = np.empty(len(wanted))
    found[order] = isotonic_regression(np.asarray(wanted)[order] - steps).x.clip(low, high - steps[-1]) + steps
    return found.tolist()
