"""The figures for a paper: the Plotly figures redrawn by matplotlib as SVG, PDF or PNG.

Letters are of 8 points, fonts are embedded (in SVG as outlines), the width is one column by default, there is no title,
and the colours match all other figures. A small PNG,
for example for an artifact of MLflow:

    picture = curves_picture(results, "png", dpi=150)  # bytes, about 500 x 480 pixels and 40 kB
    Path("curves.png").write_bytes(picture)

`shown={plan.reference, "loo-loss"}` draws a variant beside the reference alone. pyplot, which keeps figures of its own,
is not imported.
"""

from collections.abc import Collection, Sequence
from io import BytesIO
from threading import Lock
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ablations.findings.results import Results
from ablations.report.colours import OTHERS_COLOUR
from ablations.report.forest import ForestPanel, ForestRow, forest_panels
from ablations.report.series import CurveSeries, curve_series
from ablations.report.style import GREY, asymptote_text, elided, moved_apart
from ablations.text import compute_title

PictureFormat = Literal["svg", "pdf", "png"]
COLUMN_IN, PAGE_IN = 3.3, 6.8
"""Width of one column and of both columns of a two-column paper."""
FONT_PT = 8.0
DASHES = (0, (4, 2.5))
LABEL_IN = 0.27
"""Height of a label of two lines."""
ROW_IN = 0.155
TICK_IN = 0.3
"""Minimum width for the number at a tick."""
BOLD = 1.15
"""Maximum ratio of the width of bold letters to that of plain ones."""
MOST_OUTLINES = 3000
"""Limit on the readings of a figure that are drawn as vectors; beyond it they become an image in the SVG or PDF, which
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
    dpi: int = 300,
) -> bytes:
    """`curves_figure` as a picture: curves, asymptotes with their 95 % intervals, and labels at the right edge.

    `shown` is as in `curves_figure`, without grey lines; `dpi` applies to a PNG.
    """
    series = curve_series(results, shown=shown, others=None if shown is None else ())
    return _saved(curves_drawing(series, width_in=width_in), kind, dpi)


def differences_picture(results: Results, kind: PictureFormat, *, width_in: float = COLUMN_IN, dpi: int = 300) -> bytes:
    """`verdicts_figure` as a picture, with the panels side by side, or stacked within one column."""
    return _saved(differences_drawing(forest_panels(results), width_in=width_in), kind, dpi)


def _saved(figure: Figure, kind: PictureFormat, dpi: int) -> bytes:
    target = BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with _SAVING, rc_context(OPTIONS):
        figure.savefig(target, format=kind, dpi=dpi, metadata=undated)
    return target.getvalue()


def curves_drawing(series: CurveSeries, *, width_in: float) -> Figure:
    """The curves as a matplotlib figure."""
    longest = 22 if width_in > 5 else 16
    texts = [(elided(one.name, longest), asymptote_text(one.asymptote.estimate)) for one in series.variants]
    label_in = 0.16 + max(
        (_width_in(line) * (BOLD if line == lines[0] else 1) for lines in texts for line in lines), default=0
    )
    left, bottom, top = 0.5, 0.38, 0.06
    panel_in = max(0.55 * min(width_in, 4.6), LABEL_IN * len(texts))
    height_in = panel_in + bottom + top
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    strip_in = min(0.055 * (len(texts) + 1), 0.2 * width_in)
    curves_in = width_in - left - strip_in - label_in - 0.03
    down, height = bottom / height_in, panel_in / height_in
    axes = figure.add_axes((left / width_in, down, curves_in / width_in, height))
    strip = figure.add_axes(((left + curves_in + 0.03) / width_in, down, strip_in / width_in, height))
    _draw_curves(axes, series, curves_in)
    _draw_asymptotes(strip, series)
    _draw_labels(figure, strip, series, texts, LABEL_IN / panel_in)
    return figure


def differences_drawing(panels: Sequence[ForestPanel], *, width_in: float) -> Figure:
    """The differences as a matplotlib figure."""
    rows = panels[0].rows if panels else ()
    names = [elided(row.variant, 26 if width_in > 5 else 18) for row in rows]
    names_in = 0.1 + max(map(_width_in, names), default=0)
    texts_in = [0.13 + max((_width_in(_signed(row.text)) for row in panel.rows), default=0) for panel in panels]
    rows_in = ROW_IN * max(len(names), 1) + 0.06
    # Panels stand side by side if each has room for a tick or two.
    is_wide = width_in - names_in - sum(texts_in) >= len(panels) * 0.4
    num_down = 1 if is_wide else max(len(panels), 1)
    panel_in = rows_in + 0.62
    height_in = num_down * panel_in
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    own_in = (width_in - names_in - sum(texts_in)) / max(len(panels), 1)
    left = names_in
    for place, (panel, text_in) in enumerate(zip(panels, texts_in, strict=True)):
        across_in = own_in if is_wide else width_in - names_in - text_in
        bottom = height_in - (0 if is_wide else place) * panel_in - rows_in - 0.2
        box = (left / width_in, bottom / height_in, (across_in - 0.06) / width_in, rows_in / height_in)
        _draw_panel(figure.add_axes(box), panel, names if not (is_wide and place) else [], across_in)
        left += across_in + text_in if is_wide else 0.0
    return figure


def _dress(axes: Axes) -> None:
    axes.tick_params(labelsize=FONT_PT, width=0.6, length=2.5, pad=2, color="#9aa0a6", labelcolor="#1f2328")
    axes.grid(color="#eceff2", linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_linewidth(0.6)
        spine.set_color("#9aa0a6")
        spine.set_visible(side in ("left", "bottom"))


def _draw_curves(axes: Axes, series: CurveSeries, curves_in: float) -> None:
    axis, num_points = series.axis, sum(seed.compute.size for one in series.variants for seed in one.seeds)
    if axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,), numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(2 if curves_in < 2.5 else 5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    for _, line in series.others:
        axes.plot(line.compute, line.score, color=OTHERS_COLOUR, linewidth=0.4)
    for variant in series.variants:
        colour, band = variant.style.colour, variant.band
        if band is not None:
            axes.fill_between(band.compute, band.low, band.high, color=colour, alpha=0.13, linewidth=0)
        for seed in variant.seeds:
            look = {"linewidth": 0.4, "alpha": 0.45, "rasterized": num_points > MOST_OUTLINES}
            axes.plot(seed.compute, seed.score, color=colour, **look)
        for line in variant.lines:
            look: dict[str, Any] = {"linewidth": 1.2} if line.is_fitted else {"linewidth": 0.8, "linestyle": DASHES}
            axes.plot(line.compute, line.score, color=colour, **look)
    place = axes.get_xaxis_transform()
    for value, text in ((series.fitted_to, "fitted"), (series.budget, "budget")):
        if value is not None:
            axes.axvline(value, color=GREY, linewidth=0.7, linestyle=":", zorder=0.5)
            look = {"ha": "left" if text == "budget" else "right", "va": "bottom", "color": "#57606a"}
            axes.text(value, 0.02, f" {text} ", transform=place, fontsize=FONT_PT, **look)
    axes.set_xlim(axis.at(-0.02), axis.last)
    axes.set_ylim(*series.score_range)
    axes.set_xlabel(compute_title(series.compute_name), fontsize=FONT_PT, labelpad=2, loc="left")
    axes.set_ylabel("held-out pass rate", fontsize=FONT_PT, labelpad=2)
    _dress(axes)


def _draw_asymptotes(axes: Axes, series: CurveSeries) -> None:
    """A with its interval for every variant that rises; an arrow if A lies above the mark or above the axis."""
    low, high = series.score_range
    for place, variant in enumerate(sorted(series.variants, key=lambda one: -one.asymptote.height)):
        colour, mark = variant.style.colour, variant.asymptote
        estimate = mark.estimate
        if estimate is None or not estimate.rises:
            continue
        top = high if estimate.hi is None else min(max(estimate.hi, low), high)
        axes.plot([place, place], [min(max(estimate.lo, low), high), top], color=colour, linewidth=1.0)
        height = high - 0.012 * (high - low) if mark.is_above else mark.height
        axes.plot([place], [height], marker="^" if mark.is_open else "o", markersize=3.0, color=colour, clip_on=False)
    axes.set_xlim(-1, max(len(series.variants), 1))
    axes.set_ylim(low, high)
    axes.axis("off")


def _draw_labels(
    figure: Figure, strip: Axes, series: CurveSeries, texts: Sequence[tuple[str, str]], label: float
) -> None:
    """Name and A of each variant beside the strip, joined to its height; `label` is a label's share of the height."""
    low, high = series.score_range
    box, wanted = strip.get_position(), [one.asymptote.height for one in series.variants]
    gap = label * (high - low)
    places = moved_apart(wanted, gap=gap, low=low + gap / 2, high=high - gap / 2)
    for one, (name, said), height, place in zip(series.variants, texts, wanted, places, strict=True):
        starts, stands = (box.y0 + box.height * (value - low) / (high - low) for value in (height, place))
        edge, step = box.x1, 0.08 / figure.get_figwidth()
        figure.add_artist(Line2D([edge, edge + step], [starts, stands], color=one.style.colour, linewidth=0.5))
        look: dict[str, Any] = {"fontsize": FONT_PT}
        x = edge + 1.4 * step
        _write(figure.text(x, stands, "", va="bottom", weight="bold", color=one.style.colour, **look), name)
        _write(figure.text(x, stands, "", va="top", color="#1f2328", **look), said)


def _draw_panel(axes: Axes, panel: ForestPanel, names: Sequence[str], across_in: float) -> None:
    """One question: intervals, names on the left if given, numbers on the right."""
    low, high = panel.range
    if panel.question.is_ratio:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(panel.ticks(max(1, min(3, int(across_in / TICK_IN))))))
    axes.xaxis.set_major_formatter(lambda value, _: _signed(f"{value:.4g}"))
    axes.axvline(panel.question.no_difference, color=GREY, linewidth=0.7, linestyle=":", zorder=0.5)
    axes.set_ylim(max(len(panel.rows), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(panel.rows)), [""] * len(panel.rows))
    _dress(axes)
    axes.set_xlim(low, high)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    aside, look = axes.get_yaxis_transform(), {"fontsize": FONT_PT, "va": "center"}
    for place, row in enumerate(panel.rows):
        if row.known:
            _draw_row(axes, row, place, (low, high))
        colour = "#1f2328" if row.answer.differs else GREY
        text = axes.text(1 + 0.05 / across_in, place, "", transform=aside, color=colour, **look)
        _write(text, _signed(row.text))
    for place, name in enumerate(names):
        _write(axes.text(-0.03, place, "", transform=aside, ha="right", color="#1f2328", **look), name)
    title = axes.text(0, 1.0, "", transform=axes.transAxes, fontsize=FONT_PT, weight="bold", va="bottom")
    _write(title, elided(panel.title, 30))
    axes.set_xlabel(panel.question.axis, fontsize=FONT_PT, labelpad=1)


def _draw_row(axes: Axes, row: ForestRow, place: int, ends: tuple[float, float]) -> None:
    answer, colour = row.answer, row.colour
    low, high = ends[0] if answer.lo is None else answer.lo, ends[1] if answer.hi is None else answer.hi
    axes.plot([low, high], [place, place], color=colour, linewidth=1.1, solid_capstyle="butt")
    if answer.estimate is not None:
        fill = colour if answer.differs else "white"
        axes.plot([answer.estimate], [place], marker="o", markersize=3.6, color=colour, markerfacecolor=fill)
    for end, edge, arrow in ((answer.lo, ends[0], "<"), (answer.hi, ends[1], ">")):
        if end is None:
            axes.plot([edge], [place], marker=arrow, markersize=3.2, color=colour, clip_on=False)


def _write(text: Text, written: str) -> None:
    """Write literally: `$` is no mathematics, and a character that the font lacks is a box."""
    text.set_parse_math(False)
    text.set_text(drawable(written))


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _width_in(text: str) -> float:
    """The width of a text of `FONT_PT` in inches."""
    letters = drawable(text).replace("$", "S")  # as wide, and no mathematics
    return float(TextPath((0, 0), letters, size=FONT_PT).get_extents().x1) / 72


def drawable(text: str) -> str:
    """`text` with a box for every character that matplotlib's own font lacks."""
    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    return "".join(one if font.get_char_index(ord(one)) and one.isprintable() else "▯" for one in text)
