"""A figure on a dark page: the same drawing, with the colours changed that would be invisible there."""

from typing import Any

from plotly.graph_objects import Figure

ON_DARK = {
    "white": "#0e1117",
    "#1f2328": "#e6e9ed",  # text
    "#eceff2": "#2a2f38",  # grid
    "#c5cad0": "#4a505a",  # frame
    "#1a1a1a": "#f2f2f2",  # the reference
    "#216da4": "#42a7f8",
    "#d7651d": "#f5ba9a",
    "#519f82": "#628f39",
    "#a048fb": "#b32cff",
    "#0f229f": "#93d3ef",
    "#94565b": "#e87d95",
    "#584a02": "#b3ad13",
    "#4e0d54": "#d732b0",
    "#b0b6bd": "#59606b",  # variants out of focus
    "#57606a": "#a0a8b3",  # decided, out of focus
}
"""Colours by colour on white; all others are visible on both. Contrast to #0e1117 is at least 4 for those of variants
(WCAG 2.1, 1.4.11, asks for 3).
"""

CLEAR = "rgba(0,0,0,0)"
"""Transparent, so that the page's own background shows."""


def in_dark(figure: Figure) -> Figure:
    """A copy of the figure for a dark page."""
    content = figure.to_dict()
    figure = Figure(data=_recoloured(content["data"]), layout=_recoloured(content["layout"]))
    return figure.update_layout(paper_bgcolor=CLEAR, plot_bgcolor=CLEAR)


def _recoloured(part: Any, *, is_colour: bool = False) -> Any:
    """Recolour only values below a key that ends in `color`, since a variant may be named `white`."""
    match part:
        case dict():
            return {key: _recoloured(value, is_colour=key.endswith("color")) for key, value in part.items()}
        case list() | tuple():
            return [_recoloured(value, is_colour=is_colour) for value in part]
        case str() if is_colour:
            return ON_DARK.get(part.lower()) or _tint(part)
    return part


def _tint(text: str) -> str:
    """The colour `rgba(26,26,26,0.13)` for a dark page; any other text unchanged."""
    if not text.startswith("rgba("):
        return text
    *channels, opacity = text[5:-1].split(",")
    opaque = "#" + "".join(f"{int(channel):02x}" for channel in channels)
    changed = ON_DARK.get(opaque)
    if changed is None:
        return text
    red, green, blue = (int(changed[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
