"""How figures look: one colour and marker a variant, one frame and font for all."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ablations.home.plan import Plan

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

REFERENCE_COLOUR = "#1a1a1a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
"""Told apart with any kind of colour vision (Okabe and Ito 2008, Tol 2021) and dark enough on white."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon")
GREY = "#8a8a8a"
FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif", "size": 13, "color": "#1f2328"}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one variant is drawn everywhere: `Style(colour="#0072B2", symbol="square")`."""

    colour: str
    symbol: str

    def tint(self, opacity: float) -> str:
        """The colour, see-through."""
        red, green, blue = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red},{green},{blue},{opacity})"


def styles(plan: Plan) -> dict[str, Style]:
    """Colour and marker of each variant, by its place in the plan; the reference is dark."""
    others = [variant.name for variant in plan.variants if variant.name != plan.reference]
    chosen = {plan.reference: Style(colour=REFERENCE_COLOUR, symbol=SYMBOLS[0])}
    for place, name in enumerate(others):
        chosen[name] = Style(colour=COLOURS[place % len(COLOURS)], symbol=SYMBOLS[1 + place % (len(SYMBOLS) - 1)])
    return chosen


def dress(figure: "Figure", *, height: int) -> None:
    """Give a figure the look that all share."""
    figure.update_layout(
        height=height, template="none", font=FONT, paper_bgcolor="white", plot_bgcolor="white", hovermode="closest"
    )
    lines = {"gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "ticks": "outside", "ticklen": 4}
    figure.update_xaxes(showline=True, **lines)
    figure.update_yaxes(showline=True, **lines)


def mark(figure: "Figure", value: float, *, axis: str = "x", text: str = "", log: bool = False) -> None:
    """A dotted line at a value of a horizontal axis, named at its foot."""
    line = {"color": GREY, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=value, x1=value, y0=0, y1=1, xref=axis, yref="paper", layer="below", line=line)
    if text:
        # Plotly places shapes by value but annotations by logarithm.
        place = float(np.log10(value)) if log else value
        corner = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": GREY}}
        figure.add_annotation(x=place, y=0, xref=axis, yref="paper", text=text, **corner)
