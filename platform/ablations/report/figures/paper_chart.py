"""Any chart on paper, drawn by matplotlib as SVG, PDF or PNG.

Letters are of 8 points, fonts are embedded (in SVG as outlines), the width is one column by default, there is no title,
and the colours match all other figures. pyplot, which keeps its own figures, is not imported.
"""

from functools import partial
from io import BytesIO
from threading import Lock
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ablations.report.figures.axes import ticks
from ablations.report.figures.chart import (
    BAND_OPACITY,
    COLUMN_IN,
    INK,
    MEASURED,
    Axis,
    Band,
    Bars,
    Chart,
    Mark,
    Panel,
    PictureFormat,
    Series,
    elided,
)
from ablations.report.figures.layout import STRIP_GAP, Arrangement, PanelPlace, Sheet, arranged, num_slots

POINTS_PER_IN = 72
FONT_PT = 8.0
POINTS_PER_PX = 0.48
"""Points on paper per pixel on a screen."""
DARKER_GREY = "#57606a"
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "cross": "P"}
MARKERS |= {"x": "X", "star": "*", "pentagon": "p", "triangle-left": "<", "triangle-right": ">"}
"""matplotlib's markers by Plotly's names."""
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (4, 2.5)), "dot": ":"}
DRAW_STYLES = {"linear": "default", "hv": "steps-post", "vh": "steps-pre"}
MOST_OUTLINES = 3000
"""Limit on the readings of a figure that are drawn as vectors; beyond it they become an image in the SVG or PDF, which
keeps the file small."""
OPTIONS: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "ablations"}
_SAVING = Lock()
"""Held while saving, since matplotlib's options are global to the process."""


def picture(chart: Chart, kind: PictureFormat, *, width_in: float = COLUMN_IN, dpi: int = 300) -> bytes:
    """The chart as a file; `dpi` applies to a PNG. The bytes are the same each time."""
    target = BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with _SAVING, rc_context(OPTIONS):
        on_paper(chart, width_in=width_in).savefig(target, format=kind, dpi=dpi, metadata=undated)
    return target.getvalue()


def paper_sheet(width_in: float) -> Sheet:
    """A sheet of this width, in points."""
    return Sheet(
        width=POINTS_PER_IN * width_in, font=FONT_PT, width_of=_width_pt, longest=22 if width_in > 5 else 16, left=36,
        foot=29, top=4.5, head=15, label=19.4, leader=6, slot=4, row=0.43,
        plot=POINTS_PER_IN * 0.55 * min(width_in, 4.6) / 340,
    )  # fmt: skip


def on_paper(chart: Chart, *, width_in: float) -> Figure:
    """The chart as a figure of matplotlib."""
    sheet = paper_sheet(width_in)
    where = arranged(chart, sheet)
    figure = Figure(figsize=(width_in, where.height / POINTS_PER_IN), facecolor="white")
    is_crowded = sum(_num_readings(mark) for one in chart.panels for mark in one.marks) > MOST_OUTLINES
    for panel, place in zip(chart.panels, where.places, strict=True):
        _draw_panel(figure, panel, place, where, sheet, is_crowded=is_crowded)
    _draw_legend(figure, chart, where, sheet)
    return figure


def _num_readings(mark: Mark) -> int:
    return len(mark.x) if isinstance(mark, Series) and mark.width == MEASURED else 0


def _draw_panel(
    figure: Figure, panel: Panel, place: PanelPlace, where: Arrangement, sheet: Sheet, *, is_crowded: bool
) -> None:
    inner = sheet.width - where.left - where.right

    def box(left: float, right: float) -> tuple[float, float, float, float]:
        start, down = (where.left + left * inner) / sheet.width, 1 - place.bottom / where.height
        return (start, down, (right - left) * inner / sheet.width, (place.bottom - place.top) / where.height)

    end = place.strip - (STRIP_GAP if panel.strip else 0.0)
    axes = figure.add_axes(box(place.left, end))
    for mark in panel.marks:
        _draw(axes, mark, is_image=is_crowded and _num_readings(mark) > 0)
    _dress(axes, panel, place, sheet, (end - place.left) * inner)
    if panel.strip:
        strip = figure.add_axes(box(place.strip, place.right), sharey=axes)
        for mark in panel.strip:
            _draw(strip, mark)
        strip.set_xlim(-1, num_slots(panel))
        strip.axis("off")
    for rule in panel.rules:
        look: dict[str, Any] = {"color": rule.colour, "linewidth": 0.7, "linestyle": ":", "zorder": 0.5}
        if rule.y is not None:
            axes.axhline(rule.y, **look)
        if rule.x is not None:
            axes.axvline(rule.x, **look)
            side = "right" if rule.is_text_before else "left"
            _write(axes, rule.x, 0.02, f" {rule.text} ", x_of="data", ha=side, va="bottom", color=DARKER_GREY)
    if panel.title:
        _write(axes, 0.0, 1.0, elided(panel.title, 30), va="bottom", weight="bold")
    for caption in panel.captions:
        said = [*caption.lines[:-1], f"{caption.lines[-1]}{caption.bold}"]
        _write(axes, 0.0, caption.y, *said, y_of="data", va="bottom")
    _draw_labels(figure, axes, panel, place, (where.left + place.right * inner) / sheet.width, sheet)


def _draw(axes: Axes, mark: Mark, *, is_image: bool = False) -> None:
    match mark:
        case Band():
            axes.fill_between(mark.x, mark.low, mark.high, color=mark.colour, alpha=BAND_OPACITY, linewidth=0)
        case Bars():
            rows, hatch = range(len(mark.lengths)), "///" if mark.is_hatched else ""
            bars = axes.barh(rows, mark.lengths, left=mark.starts or 0, color=mark.colours, hatch=hatch)
            axes.bar_label(bars, mark.labels or [""] * len(rows), padding=2, fontsize=FONT_PT)
        case Series():
            _draw_series(axes, mark, is_image=is_image)


def _draw_series(axes: Axes, mark: Series, *, is_image: bool) -> None:
    look: dict[str, Any] = {"color": mark.colour, "alpha": mark.opacity}
    if mark.width:
        line = {
            "linewidth": POINTS_PER_PX * mark.width,
            "linestyle": DASHES[mark.dash],
            "drawstyle": DRAW_STYLES[mark.steps],
        }
        axes.plot(mark.x, mark.y, **line, **look, rasterized=is_image, solid_capstyle="butt")
    for ends, draw in ((mark.x_ends, axes.hlines), (mark.y_ends, axes.vlines)):
        if ends is not None:
            draw(mark.y if ends is mark.x_ends else mark.x, *ends, linewidth=0.7, **look)
    if mark.symbol:
        symbols, filled = np.broadcast_to(mark.symbol, len(mark.x)), np.broadcast_to(mark.is_filled, len(mark.x))
        for symbol, is_filled in dict.fromkeys(zip(symbols.tolist(), filled.tolist(), strict=True)):
            own = (symbols == symbol) & (filled == is_filled)
            fill = mark.colour if is_filled else "white"
            marker = {"marker": MARKERS[symbol], "markersize": POINTS_PER_PX * mark.size, "markerfacecolor": fill}
            points = np.asarray(mark.x)[own], np.asarray(mark.y)[own]
            axes.plot(*points, **marker, **look, linestyle="", markeredgewidth=0.7, clip_on=symbol[:8] != "triangle")


def _dress(axes: Axes, panel: Panel, place: PanelPlace, sheet: Sheet, width: float) -> None:
    axes.tick_params(labelsize=FONT_PT, width=0.6, length=2.5, pad=2, color="#9aa0a6", labelcolor=INK)
    axes.grid(color="#eceff2", linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(linewidth=0.6, color="#9aa0a6", visible=side == "bottom" or (side == "left" and not panel.num_rows))
    height = place.bottom - place.top
    for axis, scale, own, most in (
        (panel.x, axes.set_xscale, axes.xaxis, sheet.ticks_of(panel.x, width)),
        (panel.y, axes.set_yscale, axes.yaxis, max(2, int(height / (3 * FONT_PT)))),
    ):
        if axis.is_log:
            scale("log")
        if axis.range is not None:
            (axes.set_xlim if own is axes.xaxis else axes.set_ylim)(*axis.range)
        low, high = own.get_view_interval()
        if axis.ticks is None:
            round_places = FixedLocator(ticks(low, high, most, log=axis.is_log))
            is_fixed = axis.has_round_ticks or axis.is_log
            own.set_major_locator(round_places if is_fixed else MaxNLocator(most, steps=[1, 2, 5, 10]))
            own.set_major_formatter(FuncFormatter(partial(_number, axis)))
        else:
            rows = [drawable(sheet.short(name)) if place.has_names else "" for _, name in axis.ticks]
            names = rows if axis is panel.y else [_joined(*name.split("\n")) for _, name in axis.ticks]
            own.set_ticks([at for at, _ in axis.ticks], names, parse_math=False)
        own.set_minor_locator(NullLocator())
    axes.set_xlabel(drawable(panel.x.title), fontsize=FONT_PT, labelpad=2, loc="left", parse_math=False)
    axes.set_ylabel(drawable(panel.y.title), fontsize=FONT_PT, labelpad=2, parse_math=False)
    if panel.num_rows:
        axes.tick_params(axis="y", length=0, pad=4)


def _number(axis: Axis, value: float, _: int) -> str:
    return f"{value:.0%}" if axis.is_share else f"{value:,.10g}".replace("-", "−")


def _draw_labels(figure: Figure, axes: Axes, panel: Panel, place: PanelPlace, edge: float, sheet: Sheet) -> None:
    """Name and text of each label at the right edge, joined to its height."""
    low, high = axes.get_ylim()
    box = axes.get_position()
    for label, height in zip(panel.labels, place.labels, strict=True):
        starts, stands = (box.y0 + box.height * (value - low) / (high - low) for value in (label.y, height))
        step = sheet.leader / sheet.width if label.has_leader else 0.0
        figure.add_artist(Line2D([edge, edge + step], [starts, stands], color=label.colour, linewidth=0.5))
        written = sheet.text_ink(label.colour)
        x, is_double = edge + step + 0.5 * FONT_PT / sheet.width, bool(label.name and label.text)
        name = figure.text(x, stands, "", va="bottom" if is_double else "center", color=written, weight="bold")
        text = figure.text(x, stands, "", va="top" if is_double else "center", color=INK if label.name else written)
        _set(name, sheet.short(label.name))
        _set(text, label.text)


def _draw_legend(figure: Figure, chart: Chart, where: Arrangement, sheet: Sheet) -> None:
    marks = [mark for panel in chart.panels for mark in panel.marks if mark.legend]
    if not chart.legend or not marks:
        return
    handles = [
        Line2D([], [], linewidth=POINTS_PER_PX * mark.width, linestyle=DASHES[mark.dash], color=mark.colour,
               marker=MARKERS.get(str(mark.symbol), ""), markersize=3)
        if isinstance(mark, Series)
        else Line2D([], [], linewidth=4, color=mark.colours[0])
        for mark in marks
        if isinstance(mark, Series | Bars)
    ]  # fmt: skip
    widest = max(sheet.width_of(mark.legend) for mark in marks) + 4 * FONT_PT
    place: dict[str, Any] = {"loc": "upper left" if chart.legend == "above" else "lower left", "borderpad": 0}
    place |= {"bbox_to_anchor": (where.left / sheet.width, 1.0 if chart.legend == "above" else 0.0)}
    columns = max(1, min(len(marks), int((sheet.width - where.left) / widest)))
    legend = figure.legend(handles, [""] * len(marks), ncols=columns, frameon=False, **place)
    for text, mark in zip(legend.get_texts(), marks, strict=True):
        _set(text, mark.legend)


def _write(axes: Axes, x: float, y: float, *lines: str, x_of: str = "axes", y_of: str = "axes", **look: Any) -> None:
    """Write at a place in shares of the axes, or at a value of theirs."""
    ways: dict[tuple[str, str], Any] = {
        ("axes", "axes"): axes.transAxes,
        ("data", "axes"): axes.get_xaxis_transform(),
        ("axes", "data"): axes.get_yaxis_transform(),
    }
    look = {"color": INK, "transform": ways[x_of, y_of]} | look
    _set(axes.text(x, y, "", **look), *lines)


def _set(text: Text, *lines: str) -> None:
    """Write literally: `$` is no mathematics, and a character that the font lacks is a box."""
    text.set(parse_math=False, fontsize=FONT_PT, text=_joined(*lines))


def _joined(*lines: str) -> str:
    """Lines of text, each as `drawable`."""
    return "\n".join(map(drawable, lines))


def _width_pt(text: str) -> float:
    letters = drawable(text).replace("$", "S")  # as wide, and no mathematics
    return float(TextPath((0, 0), letters, size=FONT_PT).get_extents().x1) if letters.strip() else 0.0


def drawable(text: str) -> str:
    """`text` with a box for every character that matplotlib's own font lacks."""
    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    return "".join(one if font.get_char_index(ord(one)) and one.isprintable() else "▯" for one in text)
