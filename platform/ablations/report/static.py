"""The figures for a paper: the Plotly figures redrawn by matplotlib as SVG, PDF or PNG.

Fonts are embedded (in SVG as outlines), the width is one column, and the colours match all other figures. A small PNG,
for example for an artifact of MLflow:

    picture = curves_picture(results, "png", dpi=150)  # bytes, about 500 x 480 pixels and 40 kB
    Path("curves.png").write_bytes(picture)

`shown={plan.reference, "loo-loss"}` draws a variant beside the reference alone. matplotlib is imported on the first
drawing; pyplot, which keeps figures of its own, is not imported.
"""

from collections.abc import Collection, Sequence
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ablations.findings.results import Results
from ablations.report.colours import Style
from ablations.report.forest import ForestPanel, forest_panels
from ablations.report.rounding import label_of_asymptote
from ablations.report.series import CurveSeries, VariantSeries, curve_series
from ablations.report.style import GREY, elided

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

PictureFormat = Literal["svg", "pdf", "png"]
COLUMN_IN = 3.35
"""Width of a column in a two-column paper; a figure over both has 6.9."""
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
    "star": "*",
    "pentagon": "p",
}
FONT_PT, SMALL_PT = 7.0, 6.0
DASHES = (0, (4, 2.5))
LINE_IN = 0.135
"""Height of a line of the legend."""
CHARACTER_IN = 0.052
"""Approximate width of a character of `SMALL_PT`."""
MOST_OUTLINES = 3000
"""Limit on the points of a figure that are drawn as vectors; beyond it they become an image in the SVG or PDF, which
keeps the file small."""
OPTIONS: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "ablations"}
_SAVING = Lock()
"""Held while saving, since matplotlib's options are global to the process."""


def curves_picture(
    results: Results,
    kind: PictureFormat,
    *,
    width_in: float = COLUMN_IN,
    shown: Collection[str] | None = None,
    banded: Collection[str] | None = None,
    log_compute: bool = False,
    dpi: int = 300,
) -> bytes:
    """`curves_figure` as a picture: curves on the left, asymptotes with their 95 % intervals on the right.

    `shown`, `banded` and `log_compute` are as in `curves_figure`; `dpi` applies to a PNG.
    """
    series = curve_series(results, shown=shown, banded=banded, log_compute=log_compute)
    return _saved(curves_drawing(series, width_in=width_in), kind, dpi)


def differences_picture(results: Results, kind: PictureFormat, *, width_in: float = COLUMN_IN, dpi: int = 300) -> bytes:
    """`verdicts_figure` as a picture, with the panels side by side, or stacked within one column."""
    return _saved(differences_drawing(forest_panels(results), width_in=width_in), kind, dpi)


def _saved(figure: "Figure", kind: PictureFormat, dpi: int) -> bytes:
    from matplotlib import rc_context

    target = BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with _SAVING, rc_context(OPTIONS):
        figure.savefig(target, format=kind, dpi=dpi, metadata=undated)
    return target.getvalue()


def curves_drawing(series: CurveSeries, *, width_in: float) -> "Figure":
    """The curves as a matplotlib figure."""
    names = [_legend_text(one) for one in series.variants]
    longest = max(map(len, names), default=0)
    num_columns = max(1, min(len(names), int(width_in / (0.45 + CHARACTER_IN * longest))))
    legend_in = LINE_IN * -(-len(names) // num_columns) + 0.06
    height_in = 0.66 * min(width_in, 4.8) + 0.5 + legend_in
    figure = _figure(width_in, height_in)
    strip_in = min(0.22 + 0.09 * len(names), 0.3 * width_in)
    left, right, bottom, top = 0.44, 0.06, legend_in + 0.36, 0.16
    panel_in = width_in - left - right - strip_in - 0.05
    height = (height_in - bottom - top) / height_in
    axes = figure.add_axes((left / width_in, bottom / height_in, panel_in / width_in, height))
    strip = figure.add_axes(((width_in - right - strip_in) / width_in, bottom / height_in, strip_in / width_in, height))
    _draw_curves(axes, series)
    _draw_asymptotes(strip, series)
    if names:
        _draw_legend(figure, series.variants, names, num_columns)
    return figure


def differences_drawing(panels: Sequence[ForestPanel], *, width_in: float) -> "Figure":
    """The differences as a matplotlib figure."""
    names = [elided(row.variant, 30) for row in panels[0].rows]
    names_in = 0.12 + CHARACTER_IN * 1.1 * max(map(len, names), default=0)
    text_in = 0.1 + CHARACTER_IN * max((len(row.text) for panel in panels for row in panel.rows), default=0)
    rows_in = 0.17 * max(len(names), 1) + 0.1
    # Panels stand side by side if each has three quarters of an inch for itself.
    is_wide = width_in - names_in - len(panels) * text_in >= len(panels) * 0.75
    num_down = 1 if is_wide else len(panels)
    height_in = num_down * (rows_in + 0.62) + 0.05
    figure = _figure(width_in, height_in)
    across_in = (width_in - names_in) / (len(panels) if is_wide else 1)
    for place, panel in enumerate(panels):
        column, line = (place, 0) if is_wide else (0, place)
        left = names_in + column * across_in
        bottom = height_in - (line + 1) * (rows_in + 0.62) + 0.4
        box = (left / width_in, bottom / height_in, (across_in - text_in - 0.08) / width_in, rows_in / height_in)
        axes = figure.add_axes(box)
        num_ticks = max(1, int((across_in - text_in) / 0.42))
        _draw_panel(axes, panel, names if column == 0 else [""] * len(names), num_ticks)
    return figure


def _figure(width_in: float, height_in: float) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _dress(axes: "Axes") -> None:
    axes.tick_params(labelsize=SMALL_PT, width=0.6, length=2.5, color="#9aa0a6", labelcolor="#1f2328")
    axes.grid(color="#eceff2", linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_linewidth(0.6)
        spine.set_color("#9aa0a6")
        spine.set_visible(side in ("left", "bottom"))


def _draw_curves(axes: "Axes", series: CurveSeries) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axis, num_points = series.axis, sum(one.compute.size for variant in series.variants for one in variant.points)
    if axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    for variant in series.variants:
        colour = variant.style.colour
        for band in variant.bands:
            axes.fill_between(band.compute, band.low, band.high, color=colour, alpha=0.13, linewidth=0)
        for line in variant.lines:
            look: dict[str, Any] = {"linewidth": 1.1} if line.is_fitted else {"linewidth": 0.8, "linestyle": DASHES}
            axes.plot(line.compute, line.score, color=colour, **look)
        for points in variant.points:
            _draw_points(axes, points.compute, points.score, points.fitted, variant.style, num_points > MOST_OUTLINES)
    for value, text in ((series.fitted_to, "fitted to here"), (series.budget, "budget")):
        if value is not None:
            axes.axvline(value, color=GREY, linewidth=0.7, linestyle=":", zorder=0.5)
            place = axes.get_xaxis_transform()
            axes.text(value, 1.0, text, transform=place, fontsize=SMALL_PT, color="#57606a", ha="center", va="bottom")
    axes.set_xlim(axis.at(-0.02), axis.last)
    axes.set_ylim(*series.score_range)
    axes.set_xlabel(f"compute ({axis.compute_name})", fontsize=FONT_PT, labelpad=2)
    axes.set_ylabel("held-out pass rate", fontsize=FONT_PT, labelpad=2)
    _dress(axes)


def _draw_points(
    axes: "Axes", compute: np.ndarray, score: np.ndarray, fitted: np.ndarray, style: Style, as_image: bool
) -> None:
    for inside, fill in ((False, "white"), (True, style.colour)):
        chosen = fitted == inside
        if chosen.any():
            axes.plot(
                compute[chosen],
                score[chosen],
                linestyle="none",
                marker=MARKERS[style.symbol],
                markersize=2.4,
                markerfacecolor=fill,
                markeredgecolor=style.colour,
                markeredgewidth=0.5,
                rasterized=as_image,
            )


def _draw_asymptotes(axes: "Axes", series: CurveSeries) -> None:
    """A with its interval for every variant; an arrow if A lies above the mark or above the axis."""
    low, high = series.score_range
    marked = [(one, one.asymptote) for one in series.variants if one.asymptote is not None]
    for place, (variant, mark) in enumerate(marked):
        colour, estimate = variant.style.colour, mark.estimate
        if not estimate.rises:
            continue
        top = high if estimate.hi is None else min(max(estimate.hi, low), high)
        axes.plot([place, place], [min(max(estimate.lo, low), high), top], color=colour, linewidth=1.0)
        marker = "^" if mark.is_open else MARKERS[variant.style.symbol]
        height = high - 0.012 * (high - low) if mark.is_above else mark.height
        axes.plot([place], [height], marker=marker, markersize=4.0, color=colour, clip_on=False)
    axes.set_xlim(-0.7, max(len(marked), 1) - 0.3)
    axes.set_ylim(low, high)
    axes.set_xticks([])
    _dress(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False, labelleft=False)
    axes.set_xlabel("A", fontsize=FONT_PT, labelpad=9)


def _legend_text(variant: VariantSeries) -> str:
    name = elided(variant.name, 34)
    return f"{name}: {label_of_asymptote(variant.asymptote.estimate)}" if variant.asymptote else name


def _draw_legend(figure: "Figure", variants: Sequence[VariantSeries], names: Sequence[str], num_columns: int) -> None:
    legend = figure.legend(
        [_legend_key(one.style) for one in variants],
        [f"variant {place}" for place in range(len(names))],
        loc="lower center",
        ncols=num_columns,
        fontsize=SMALL_PT,
        frameon=False,
        handlelength=2.0,
        labelspacing=0.35,
        columnspacing=1.2,
        borderpad=0.1,
        borderaxespad=0.1,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        _write(text, name)


def _legend_key(style: Style) -> "Line2D":
    from matplotlib.lines import Line2D

    marker: dict[str, Any] = {"marker": MARKERS[style.symbol], "markersize": 3.2}
    return Line2D([], [], color=style.colour, linewidth=1.1, **marker)


def _draw_panel(axes: "Axes", panel: ForestPanel, names: Sequence[str], num_ticks: int) -> None:
    if panel.log:
        axes.set_xscale("log")
    for place, row in enumerate(panel.rows):
        at, colour = row.drawn_at, row.style.colour
        if at is None:
            continue
        low, high = at if row.lo is None else row.lo, at if row.hi is None else row.hi
        axes.plot([low, high], [place, place], color=colour, linewidth=1.1, solid_capstyle="butt")
        marker = "|" if row.arrow else MARKERS[row.style.symbol]
        axes.plot([at], [place], marker=marker, markersize=4.2, color=colour)
    axes.axvline(panel.null, color=GREY, linewidth=0.7, linestyle=":", zorder=0.5)
    axes.set_ylim(max(len(panel.rows), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(panel.rows)), [""] * len(panel.rows))
    _dress(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    aside, look = axes.get_yaxis_transform(), {"fontsize": SMALL_PT, "va": "center", "color": "#1f2328"}
    for place, (row, name) in enumerate(zip(panel.rows, names, strict=True)):
        _write(axes.text(1.05, place, "", transform=aside, **look), row.text.replace("-", "−"))
        _write(axes.text(-0.03, place, "", transform=aside, ha="right", **look), name)
    left, right = axes.get_xlim()
    for place, row in enumerate(panel.rows):
        for end, edge, arrow in ((row.lo, left, "<"), (row.hi, right, ">")):
            if row.drawn_at is not None and end is None:  # to the end of the axis and beyond
                axes.plot([row.drawn_at, edge], [place, place], color=row.style.colour, linewidth=1.1)
                axes.plot([edge], [place], marker=arrow, markersize=3.2, color=row.style.colour, clip_on=False)
    axes.set_xlim(left, right)
    _write(axes.set_title("", fontsize=FONT_PT, pad=3, loc="left"), elided(panel.title, 60))
    axes.set_xlabel(panel.axis_title, fontsize=SMALL_PT, labelpad=1)
    if all(row.drawn_at is None for row in panel.rows):
        axes.set_xticks([])
    else:
        _set_ticks(axes, num_ticks)


def _set_ticks(axes: "Axes", num_ticks: int) -> None:
    """Set plain numbers as ticks, as many as fit."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator

    if axes.get_xscale() != "log":
        axes.xaxis.set_major_locator(MaxNLocator(num_ticks))
        return
    low, high = axes.get_xlim()
    plain = [base * 10.0**power for power in range(-3, 4) for base in (1, 2, 5)]
    if high / low < 3:
        plain = [round(0.1 * step, 1) for step in range(1, 40)]
    inside = [value for value in plain if low <= value <= high]
    axes.xaxis.set_major_locator(FixedLocator(inside[:: max(1, -(-len(inside) // num_ticks))]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _write(text: "Text", written: str) -> None:
    """Write literally: `$` is no mathematics, and a character that the font lacks is a box."""
    text.set_parse_math(False)
    text.set_text(drawable(written))


def drawable(text: str) -> str:
    """`text` with a box for every character that matplotlib's own font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    return "".join(one if font.get_char_index(ord(one)) and one.isprintable() else "▯" for one in text)
