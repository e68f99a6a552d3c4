"""The curves on a screen: a few variants in colour, the others grey, against compute or another counter of the runs.

Each variant has a line, the mean of its seeds' fits, with a band, a thin line of readings per seed, and at the right
edge its A with the interval beside its name. Readings are thinned to the resolution of a screen. The layout for a
narrow screen has the same traces.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plotly.graph_objects import Figure, Scatter

from ablations.findings.results import Results
from ablations.findings.sweep_forecast import ForecastBand
from ablations.report.colours import OTHERS_COLOUR
from ablations.report.series import CurveSeries, LineSeries, VariantSeries, curve_series
from ablations.report.style import (
    FONT,
    GREY,
    asymptote_text,
    dress,
    elided,
    end_label,
    in_hover,
    leader,
    mark,
    moved_apart,
    plain,
)
from ablations.text import compute_title

CURVES_LEGEND = (
    "Thick lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), averaged over seeds, with their 95 % band; dashed parts "
    "are extrapolated. Thin lines are the evaluations of each seed. A, the fitted ceiling, is at the right edge with "
    "its 95 % interval; an arrow means that it may be higher."
)
"""Caption of `curves_figure` and of `static.curves_picture`."""
POINTS_LEGEND = "Filled points were fitted, hollow ones were not."
"""Caption of the points."""
ASYMPTOTE_KEY = "A: fitted ceiling [95 %]"
"""What the labels at the right edge show, written below them."""
Along = Callable[[np.ndarray], np.ndarray]
"""Function from compute to the horizontal axis, for one run or variant."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counter on the horizontal axis: `Counted(title="training tokens", name="tokens", along={"scalerl": ...})`."""

    title: str
    name: str
    """Unit for hover texts."""
    along: Mapping[str, Along]
    """Functions by variant; a variant without one is left out."""


@dataclass(frozen=True, kw_only=True)
class CurvesLayout:
    """Pixels of a figure of curves, and the longest name in a label."""

    height: int
    left: int
    right: int
    bottom: int
    label: int
    """Height of a label of two lines."""
    slot: float
    """Width of a variant in the strip of asymptotes, as a share of the plot."""
    font: int
    longest_name: int
    ticks: int
    top: int = 12


WIDE = CurvesLayout(height=400, left=58, right=190, bottom=48, label=31, slot=0.013, font=12, longest_name=24, ticks=7)
NARROW = CurvesLayout(
    height=320, left=44, right=148, bottom=46, label=26, slot=0.018, font=10, longest_name=19, ticks=4
)


def along_rows(compute: np.ndarray, counted: np.ndarray) -> Along:
    """A function from compute to a counter of a run: linear between two evaluations, and at the mean rate beyond the
    last.

        along_rows(np.array([0, 10]), np.array([0, 500]))(np.array([5, 20])) is [250, 1000]
    """
    last, rate = compute[-1], counted[-1] / compute[-1] if compute[-1] else 0.0
    return lambda C: np.interp(C, compute, counted) + rate * np.clip(np.asarray(C, dtype=float) - last, 0, None)


def curves_figure(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    log_compute: bool = False,
    with_points: bool = False,
) -> Figure:
    """Pass rate against compute with fits, their continuation beyond the budget, and asymptotes.

    `shown` are the variants with a label and, as far as the colours go, a colour of their own; by default the reference
    and those with the highest level. All else are grey lines. `with_points` also draws the evaluations, filled if they
    were fitted.
    """
    series = curve_series(results, shown=shown, log_compute=log_compute)
    return curves_figures(results, series, with_points=with_points)[0]


def curves_figures(
    results: Results, series: CurveSeries, *, counted: Counted | None = None, with_points: bool = False
) -> tuple[Figure, Figure]:
    """`curves_figure` of a series, and an empty figure with its layout for a narrow screen; `counted` is compute itself
    by default."""
    plan = results.plan
    compute: dict[str, Along] = {one.name: lambda C: C for one in results.variants}
    counted = counted or Counted(title=compute_title(plan.compute_name), name=plan.hours_name, along=compute)
    variants = [one for one in series.variants if one.name in counted.along]
    traces: list[Scatter] = []
    if grey := [(name, line) for name, line in series.others if name in counted.along]:
        traces.append(_grey_lines(grey, counted))
    for variant in variants:
        along, colour = counted.along[variant.name], variant.style.colour
        if variant.band is not None:
            traces.append(_band(variant, variant.band, along))
        traces += _seeds(variant, counted, with_points=with_points)
        traces += [_line(line, variant.name, colour, along) for line in variant.lines]
    for place, variant in enumerate(sorted(variants, key=lambda one: -one.asymptote.height)):
        traces += _asymptote(variant, place, series.score_range)
    wide, narrow = Figure(traces), Figure()
    for figure, pixels in ((wide, WIDE), (narrow, NARROW)):
        _lay_out(figure, variants, series, counted, pixels)
        if counted.name == plan.hours_name:
            if series.fitted_to is not None:
                mark(figure, series.fitted_to, text="fitted to here", side="right", log=series.axis.log)
            mark(figure, series.budget, text="budget", log=series.axis.log)
    return wide, narrow


def _lay_out(
    figure: Figure, variants: Sequence[VariantSeries], series: CurveSeries, counted: Counted, pixels: CurvesLayout
) -> None:
    """Axes, the strip of asymptotes, and the labels beside it."""
    low, high = series.score_range
    plot = max(pixels.height - pixels.top - pixels.bottom, pixels.label * len(variants))
    dress(figure, height=plot + pixels.top + pixels.bottom)
    strip = min(pixels.slot * (len(variants) + 1), 0.4)
    figure.update_xaxes(
        title=counted.title,
        title_standoff=6,
        type="log" if series.axis.log else "linear",
        nticks=pixels.ticks,
        tickangle=0,
    )
    figure.update_yaxes(title="held-out pass rate", title_standoff=6, range=[low, high])
    figure.update_layout(
        xaxis={"domain": [0, 1 - strip - 0.01]},
        xaxis2={
            "domain": [1 - strip, 1],
            "range": [-1, max(len(variants), 1)],
            "visible": False,
            "fixedrange": True,
            "anchor": "y",
        },
        margin={"l": pixels.left, "r": pixels.right, "t": pixels.top, "b": pixels.bottom},
        font_size=pixels.font,
        showlegend=False,
    )
    gap = (high - low) * pixels.label / plot
    wanted = [one.asymptote.height for one in variants]
    places = moved_apart(wanted, gap=gap, low=low + gap / 2, high=high - gap / 2)
    leaders, labels = [], []
    for one, place in zip(variants, places, strict=True):
        leaders.append(leader(one.asymptote.height, place, one.style.colour))
        name, said = elided(one.name, pixels.longest_name), asymptote_text(one.asymptote.estimate)
        for text, shift, ink in ((f"<b>{plain(name)}</b>", 1, one.style.colour), (plain(said), -1, FONT["color"])):
            labels.append(end_label(text, place, colour=ink, size=pixels.font, yshift=shift * pixels.label / 4))
    if any(one.asymptote.estimate is not None for one in variants):
        corner = {"xref": "paper", "x": 1, "xshift": pixels.right - 4, "xanchor": "right", "yref": "paper", "y": 0}
        look = {"yshift": -7, "yanchor": "top", "showarrow": False, "font": {"size": pixels.font - 1, "color": GREY}}
        labels.append(corner | look | {"text": ASYMPTOTE_KEY})
    figure.update_layout(shapes=leaders, annotations=labels)


def _grey_lines(lines: Sequence[tuple[str, LineSeries]], counted: Counted) -> Scatter:
    """All other variants in one trace, distinguished by hover texts."""
    x, y, names = [], [], []
    for name, line in lines:
        x += [*counted.along[name](line.compute), None]
        y += [*np.round(line.score, 5), None]
        names += [plain(name)] * (line.compute.size + 1)
    return Scatter(
        x=x, y=y, mode="lines", line={"color": OTHERS_COLOUR, "width": 1}, opacity=0.7, text=names,
        hovertemplate="%{text}: %{y:.4f}<extra></extra>", name=f"{len(lines)} others",
    )  # fmt: skip


def _line(line: LineSeries, name: str, colour: str, along: Along) -> Scatter:
    look: dict[str, Any] = {"width": 2.6, "dash": "solid"} if line.is_fitted else {"width": 1.5, "dash": "dash"}
    return Scatter(
        x=along(line.compute), y=np.round(line.score, 5), mode="lines", line={"color": colour, **look},
        hovertemplate=f"{in_hover(name)}, fit: %{{y:.4f}}<extra></extra>", name=plain(name),
    )  # fmt: skip


def _band(variant: VariantSeries, band: ForecastBand, along: Along) -> Scatter:
    x = along(band.compute)
    return Scatter(
        x=np.concatenate([x, x[::-1]]), y=np.round(np.concatenate([band.high, band.low[::-1]]), 5), mode="lines",
        fill="toself", fillcolor=variant.style.tint(0.11),
        name=plain(variant.name), line={"width": 0}, hoverinfo="skip",
    )  # fmt: skip


def _seeds(variant: VariantSeries, counted: Counted, *, with_points: bool) -> list[Scatter]:
    """A thin line through the readings of each seed, in one trace; points on it are filled if they were fitted."""
    x: list[float | None] = []
    y: list[float | None] = []
    texts, symbols, style = [], [], variant.style
    for seed in variant.seeds:
        x += [*map(float, counted.along[variant.name](seed.compute)), None]
        y += [*np.round(seed.score, 5).tolist(), None]
        texts += [f"seed {seed.seed}{f', mean of {size} evaluations' if size > 1 else ''}" for size in seed.sizes]
        symbols += [style.symbol if is_full else f"{style.symbol}-open" for is_full in seed.fitted]
        texts, symbols = [*texts, ""], [*symbols, style.symbol]
    if not x:
        return []
    hover = f"{in_hover(variant.name)}, %{{text}}<br>%{{x:.4g}} {counted.name}: %{{y:.4f}}<extra></extra>"
    marker = {"marker": {"symbol": symbols, "size": 5, "color": style.colour}} if with_points else {}
    return [
        Scatter(
            x=x, y=y, text=texts, mode="lines+markers" if with_points else "lines", opacity=0.5,
            line={"color": style.colour, "width": 0.8}, hovertemplate=hover, name=plain(variant.name), **marker,
        )
    ]  # fmt: skip


def _asymptote(variant: VariantSeries, place: int, score_range: tuple[float, float]) -> list[Scatter]:
    """A with its interval in the strip at the right edge; nothing for a curve that does not rise."""
    (low, high), mark_, colour = score_range, variant.asymptote, variant.style.colour
    estimate = mark_.estimate
    if estimate is None or not estimate.rises:
        return []
    top = high if estimate.hi is None else min(max(estimate.hi, low), high)
    symbol = "triangle-up" if mark_.is_open else "circle"
    look: dict[str, Any] = {"xaxis": "x2", "name": plain(variant.name)}
    return [
        Scatter(
            x=[place] * 2, y=[min(max(estimate.lo, low), high), top], mode="lines", hoverinfo="skip",
            line={"color": colour, "width": 2}, **look,
        ),
        Scatter(
            x=[place], y=[mark_.height], mode="markers", marker={"color": colour, "symbol": symbol, "size": 7},
            hovertemplate=f"{in_hover(variant.name)}: {in_hover(asymptote_text(estimate))}<extra></extra>", **look,
        ),
    ]  # fmt: skip
