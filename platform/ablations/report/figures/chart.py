"""A figure as plain data: its panels, the marks in them, and the labels beside them.

`plotly_chart` draws any chart on a screen and `paper_chart` on paper; `layout` places its parts on either. Texts are as
written, and each drawer escapes them. Widths and sizes are in pixels of a screen; colours are those of a white page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

GREY = "#6b6b6b"
"""The colour of text of little weight, at 4.5 : 1 or more against the page (WCAG 2.1, 1.4.3), and of thin lines."""
INK = "#1f2328"
"""The colour of text."""
BAND_OPACITY = 0.12
MEASURED = 0.8
"""Width of a line through readings."""
COLUMN_IN, PAGE_IN = 3.3, 6.8
"""Width of one column and of both columns of a two-column paper."""
Dash = Literal["solid", "dash", "dot"]
PictureFormat = Literal["svg", "pdf", "png"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Mark:
    """Anything that is drawn between the axes of a panel."""

    name: str = ""
    legend: str = ""
    """Text in the legend; empty for no entry."""
    hover: str = ""
    """Text at a point, in which {name}, {x:.4g}, {y:.4f}, {unit} of the x axis and the point's {text} are filled in;
    empty shows none."""
    texts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Series(Mark):
    """Points in order, joined by a line, drawn as markers, or both; NaN is a gap.

    Series(x=[1, 2], y=[0.3, 0.4], colour="#216da4", name="loo", width=2, hover="{name}: {y:.4f}")
    """

    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    colour: str
    width: float = 0.0
    """Width of the line; 0 draws none."""
    dash: Dash = "solid"
    steps: Literal["linear", "hv", "vh"] = "linear"
    """How one point is joined to the next: by a straight line, across and then up, or up and then across."""
    symbol: str | Sequence[str] = ""
    """Plotly's name of the marker, one for all points or one for each; empty draws none."""
    is_filled: bool | Sequence[bool] | np.ndarray = True
    size: float = 6.0
    opacity: float = 1.0
    x_ends: tuple[Sequence[float], Sequence[float]] | None = None
    y_ends: tuple[Sequence[float], Sequence[float]] | None = None
    """Lower and upper ends of an error bar at each point."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Band(Mark):
    """The area between two lines."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    colour: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars(Mark):
    """Horizontal bars in rows 0, 1, 2, ..., from `starts` (0 by default) with these lengths."""

    lengths: Sequence[float]
    colours: Sequence[str]
    starts: Sequence[float] = ()
    is_hatched: bool = False
    labels: Sequence[str] = ()
    """Text after the end of each bar."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis; without a range it covers everything drawn."""

    title: str = ""
    unit: str = ""
    """Unit in hover texts."""
    range: tuple[float, float] | None = None
    is_log: bool = False
    ticks: tuple[tuple[float, str], ...] | None = None
    """Tick positions with their labels; () for no ticks, None for numbers."""
    has_round_ticks: bool = False
    """True if its ticks are those of `axes.ticks`, which do not change with a zoom."""
    is_share: bool = False
    """True if its numbers are percentages."""
    from_zero: bool = False


@dataclass(frozen=True, kw_only=True)
class DottedLine:
    """A straight line across a panel at a value of the x axis or the y axis, with `text` at its foot."""

    x: float | None = None
    y: float | None = None
    text: str = ""
    is_text_before: bool = False
    """True if the text is on the left of the line."""
    colour: str = GREY


@dataclass(frozen=True, kw_only=True)
class EdgeLabel:
    """A name and a text at the right edge, at a height of the y axis; moved if another label would cover it."""

    y: float
    name: str = ""
    text: str = ""
    colour: str = INK
    has_leader: bool = True
    """True if a line joins it to its height."""


@dataclass(frozen=True, kw_only=True)
class Caption:
    """Lines over a height of the y axis, at the left edge; the last one ends with words in bold."""

    y: float
    lines: tuple[str, ...]
    bold: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes and the marks drawn on them; later marks lie above earlier ones."""

    x: Axis
    y: Axis
    marks: Sequence[Mark] = ()
    strip: Sequence[Series] = ()
    """Marks in a strip at the right edge, with the same y axis; their x is 0, 1, 2, ..."""
    rules: Sequence[DottedLine] = ()
    labels: Sequence[EdgeLabel] = ()
    key: str = ""
    """Explanation of the labels, written below them."""
    captions: Sequence[Caption] = ()
    title: str = ""
    height: float = 340.0
    """Height of the plot on a wide screen."""
    num_rows: int = 0
    """Rows of a panel whose y axis has rows 0, 1, 2, ... from the top, each of them `row_height` high; else 0."""
    row_height: float = 26.0


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure: panels side by side if there is room, else one below the other."""

    alt: str
    """A description for readers who cannot see the figure."""
    panels: Sequence[Panel]
    is_stacked: bool = False
    """True if the panels stand one below the other in any case, with a common zoom if `has_common_x`."""
    has_common_x: bool = False
    legend: Literal["", "above", "below"] = ""
    is_read_at_x: bool = False
    """True if the pointer shows the values of all series at its x."""


def interval(
    lo: float | None,
    estimate: float | None,
    hi: float | None,
    *,
    at: float,
    edges: tuple[float, float],
    colour: str,
    name: str,
    hover: str,
    is_upright: bool = False,
    is_filled: bool = True,
) -> list[Series]:
    """The bar of an interval and its point, in row `at`, or upright in column `at`. An end that is unknown or beyond
    the edge of the panel is drawn as an arrow at the edge."""
    first, last = edges
    middle = first if estimate is None else estimate
    is_open = (lo is None or middle < first, hi is None or middle > last)
    ends = [first if lo is None else min(max(lo, first), last), last if hi is None else min(max(hi, first), last)]
    arrows = ("triangle-down", "triangle-up") if is_upright else ("triangle-left", "triangle-right")
    points = [(estimate, "circle", is_filled)] if estimate is not None and first <= estimate <= last else []
    points += [(edge, arrow, True) for edge, arrow, drawn in zip(edges, arrows, is_open, strict=True) if drawn]
    drawn: list[tuple[list[float], dict[str, Any]]] = [(ends, {"width": 2.0})]
    if points:
        look = {"symbol": [symbol for _, symbol, _ in points], "is_filled": [filled for *_, filled in points]}
        drawn.append(([place for place, *_ in points], look | {"size": 7.0}))
    return [
        Series(
            x=[at] * len(along) if is_upright else along, y=along if is_upright else [at] * len(along),
            colour=colour, name=name, hover=hover, **look,
        )
        for along, look in drawn
    ]  # fmt: skip


def law(x: np.ndarray, y: np.ndarray, *, is_fitted: bool, colour: str, name: str, hover: str = "") -> Series:
    """A part of a fitted curve: solid if it was fitted, else thin and dashed."""
    width, dash = (2.6, "solid") if is_fitted else (1.5, "dash")
    return Series(x=x, y=y, width=width, dash=dash, colour=colour, name=name, hover=hover)


def rows_axis(names: Sequence[str]) -> Axis:
    """The y axis of a panel with named rows, the first one at the top."""
    return Axis(range=(max(len(names), 1) - 0.5, -0.5), ticks=tuple(enumerate(names)))


def literal(text: str) -> str:
    """`text` within a hover text, in which { begins a number."""
    return text.replace("{", "{{").replace("}", "}}")


def elided(text: str, most: int) -> str:
    """`text` without its middle if it is longer than `most` characters: `loss.type=…prompts=32`."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
