"""Pass rate against compute: measured points, fitted lines, forecasts, and asymptotes with their intervals."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from ablations.report.axes import ComputeAxis
from ablations.report.colours import Style
from ablations.report.rounding import label_of_asymptote
from ablations.report.series import (
    AsymptoteMark,
    BandSeries,
    LineSeries,
    PointSeries,
    VariantSeries,
    curve_series,
)
from ablations.report.style import dress, elided, in_hover, mark, plain
from ablations.report.thinning import most_points_of_run
from ablations.verdict.results import Results

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

CURVES_LEGEND = (
    "Filled points were fitted, hollow ones were not; lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), dashes are "
    "extrapolated to twice the budget, bands are 95 % intervals of the fitted curve. At the right edge a stroke is at "
    "A; an arrow says that A lies there or higher."
)
"""What `curves_figure` shows, for the caption below it."""
LABEL_PX = 6.4
"""Width of a character of a label."""
LONGEST_NAME = 22
"""Characters of a variant's name in a label; the legend has it whole."""


def curves_figure(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    banded: Collection[str] | None = None,
    log_compute: bool = False,
) -> "Figure":
    """Pass rate against compute with fits, forecasts to twice the budget and asymptotes.

    `shown` are the variants drawn (all by default), `banded` those with their uncertainty (the reference by default).
    A click on a name in the legend hides everything of that variant.
    """
    from plotly.graph_objects import Figure

    num_runs = sum(len(variant.runs) for variant in results.variants if shown is None or variant.name in shown)
    most = most_points_of_run(num_runs)
    series = curve_series(results, shown=shown, banded=banded, log_compute=log_compute, most_of_run=most)
    figure = Figure()
    for variant in series.variants:
        figure.add_traces(_variant_traces(variant, series.axis))
    labels = [(one, one.asymptote) for one in series.variants if one.asymptote is not None]
    figure.add_traces([_asymptote_trace(variant, mark, series.axis) for variant, mark in labels])
    if series.fitted_to is not None:
        mark(figure, series.fitted_to, text="fitted up to here", log=log_compute)
    mark(figure, series.budget, text="budget", log=log_compute)
    figure.update_xaxes(**series.axis.layout)
    figure.update_yaxes(title="held-out pass rate", range=series.score_range)
    dress(figure, height=max(620, 120 + 24 * len(labels)))
    longest = max((len(_label(variant.name, mark)) for variant, mark in labels), default=0)
    figure.update_layout(
        margin={"l": 70, "r": round(20 + LABEL_PX * longest), "t": 30, "b": 70},
        legend={"orientation": "h", "yanchor": "top", "y": -0.15, "x": 0, "itemsizing": "constant"},
    )
    return figure


def variant_figure(results: Results, name: str) -> "Figure":
    """One variant beside the reference, both with their uncertainty."""
    pair = {results.plan.reference, name}
    return curves_figure(results, shown=pair, banded=pair)


def _variant_traces(variant: VariantSeries, axis: ComputeAxis) -> list["Scatter"]:
    traces = [
        *(_band(band, variant.style) for band in variant.bands),
        *(_line(line, variant.style) for line in variant.lines),
        *(_points(points, variant.style, axis) for points in variant.points),
    ]
    for trace in traces:
        trace.update(legendgroup=variant.name, showlegend=False)
    return [*traces, _legend_entry(variant.name, variant.style)]


def _legend_entry(name: str, style: Style) -> "Scatter":
    """What stands for a variant in the legend; it draws nothing."""
    from plotly.graph_objects import Scatter

    marker = {"symbol": style.symbol, "size": 8, "color": style.colour}
    return Scatter(
        x=[None],
        y=[None],
        mode="lines+markers",
        line={"color": style.colour},
        marker=marker,
        name=plain(name),
        legendgroup=name,
    )


def _points(points: PointSeries, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    fill = [style.colour if inside else "white" for inside in points.fitted]
    marker = {"symbol": style.symbol, "size": 6, "color": fill, "line": {"color": style.colour, "width": 1.2}}
    hover = f"{in_hover(points.run)}<br>%{{x:.4g}} {axis.hours_name}: %{{y:.4f}}<extra></extra>"
    return Scatter(x=points.compute, y=points.score, mode="markers", marker=marker, hovertemplate=hover)


def _line(line: LineSeries, style: Style) -> "Scatter":
    from plotly.graph_objects import Scatter

    look = {"color": style.colour, "width": 2.2, "dash": "solid"}
    if not line.is_fitted:
        look |= {"width": 1.6, "dash": "dash"}
    return Scatter(x=line.compute, y=line.score, mode="lines", line=look, hoverinfo="skip")


def _band(band: BandSeries, style: Style) -> "Scatter":
    from plotly.graph_objects import Scatter

    return Scatter(
        x=np.concatenate([band.compute, band.compute[::-1]]),
        y=np.concatenate([band.high, band.low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=style.tint(0.13),
        line={"width": 0},
        hoverinfo="skip",
    )


def _label(name: str, mark: AsymptoteMark) -> str:
    arrow = "↑ " if mark.is_open else ""
    return f"{arrow}{elided(name, LONGEST_NAME)}: {label_of_asymptote(mark.estimate)}"


def _asymptote_trace(variant: VariantSeries, mark: AsymptoteMark, axis: ComputeAxis) -> "Scatter":
    """A stroke at the asymptote at the right edge, led to its label."""
    from plotly.graph_objects import Scatter

    colour = variant.style.colour
    return Scatter(
        x=[axis.at(0.94), axis.at(0.98), axis.last],
        y=[mark.height, mark.height, mark.label_height],
        mode="lines+text",
        line={"color": colour, "width": 1.6},
        text=["", "", f" {plain(_label(variant.name, mark))}"],
        textposition="middle right",
        textfont={"color": colour, "size": 12},
        cliponaxis=False,
        hoverinfo="skip",
        legendgroup=variant.name,
        showlegend=False,
    )
