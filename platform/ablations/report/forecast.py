"""Figures of forecasts: every variant at more compute, and its probability of being the best there."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ablations.answers.forecasts import Chance, leaderboard
from ablations.findings.kept_forecast import ForecastBand, ForecastLine, kept_band, kept_lines
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import forecast_groups, spread_of
from ablations.report.axes import ComputeAxis
from ablations.report.colours import Style
from ablations.report.end_labels import end_label, leader, moved_apart
from ablations.report.leading import look_of
from ablations.report.style import dress, elided, in_hover, mark, plain
from ablations.report.thinning import most_points_of_run, thinned
from ablations.text import compute_text

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Scatter

FORECAST_TO = 10.0
"""End of the curves, in budgets."""
LEGEND = {"orientation": "h", "yanchor": "top", "y": -0.17, "x": 0, "itemsizing": "constant"}
"""Layout of the legend, below the figure."""
LABEL_PX, LONGEST_LABEL, LABEL_FONT = 19, 15, 11
"""Height of the label of a curve, its most characters, and its size."""
FORECAST_LEGEND = (
    "Points are evaluations; lines are forecasts, mean over seeds, dashed where extrapolated: by ScaleRL eq. 1 "
    "(arXiv 2510.13786), or beyond the fitted range by the median over several families of curves where eq. 1 leaves "
    "their 80 % band. Bands are 95 % intervals, which include those families. Bars: the share of joint draws in which "
    "a variant is highest at the compute named above them."
)
"""Caption of `forecast_figure`."""


def forecast_figure(
    results: Results, *, banded: Collection[str] | None = None, compute: float | None = None
) -> "Figure":
    """Left pass rate against log compute to ten budgets, right P(variant wins) at `compute`, by default ten budgets.

    `banded` are the variants with an uncertainty band (the reference by default).
    """
    from plotly.subplots import make_subplots

    groups, titles = forecast_groups(results), ["", wins_title(results, compute)]
    figure = make_subplots(cols=2, column_widths=[0.7, 0.3], horizontal_spacing=0.19, subplot_titles=titles)
    _draw_curves(figure, results, banded)
    if groups:
        chances = leaderboard(groups, compute or _last(results), spread_of(results))
        figure.add_trace(_bars(results, chances), row=1, col=2)
    dress(figure, height=_height(len(groups)))
    axis = _axis(results)
    figure.update_xaxes(**axis.layout, row=1, col=1)
    figure.update_yaxes(title="held-out pass rate", row=1, col=1)
    figure.update_xaxes(range=[0, 1.12], row=1, col=2)
    figure.update_yaxes(autorange="reversed", automargin=True, row=1, col=2)
    figure.update_layout(margin={"l": 70, "r": 20, "t": 40, "b": 70}, legend=LEGEND)
    return figure


def forecast_curves_figure(results: Results, *, banded: Collection[str] | None = None) -> "Figure":
    """The left half of `forecast_figure`, for a page that may be narrow."""
    from plotly.graph_objects import Figure

    figure = Figure()
    lines = _draw_curves(figure, results, banded)
    height, margin = _height(len(lines)), {"l": 60, "r": 130, "t": 12, "b": 50}
    dress(figure, height=height)
    figure.update_xaxes(**_axis(results).layout, title_standoff=6)
    figure.update_yaxes(title="held-out pass rate", title_standoff=6)
    figure.update_layout(margin=margin, showlegend=False)
    if lines:
        _label_ends(figure, results, lines, plot=height - margin["t"] - margin["b"])
    return figure


def _label_ends(figure: "Figure", results: Results, lines: Sequence[ForecastLine], *, plot: int) -> None:
    """Names at the ends of the curves, on an axis of `plot` pixels."""
    look = look_of(results)
    traces: Any = figure.data
    rates = [rate for trace in traces for rate in (trace.y if trace.y is not None else ())]
    air = 0.05 * (max(rates) - min(rates))
    low, high = min(rates) - air, max(rates) + air
    gap = (high - low) * LABEL_PX / plot
    heights = [float(line.rate[-1]) for line in lines]
    places = moved_apart(heights, gap=gap, low=low + gap / 2, high=high - gap / 2)
    for line, height, place in zip(lines, heights, places, strict=True):
        colour, name = look[line.variant].colour, plain(elided(line.variant, LONGEST_LABEL))
        figure.add_shape(leader(height, place, colour))
        figure.add_annotation(end_label(f"<b>{name}</b>", place, colour=colour, size=LABEL_FONT))
    figure.update_yaxes(range=[low, high])


def chances_figure(results: Results, chances: Sequence[Chance]) -> "Figure":
    """The right half of `forecast_figure`: P(variant wins) of each of the `chances`."""
    from plotly.graph_objects import Figure

    figure = Figure([_bars(results, chances)] if chances else [])
    dress(figure, height=90 + 48 * len(chances))
    figure.update_xaxes(range=[0, 1.15], nticks=6)
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=4)
    figure.update_layout(margin={"l": 10, "r": 10, "t": 10, "b": 40})
    return figure


def wins_title(results: Results, compute: float | None = None) -> str:
    """Title of the bars: `P(wins) at 4,000 GPU-hours`."""
    return f"P(wins) at {compute_text(compute or _last(results))} {results.plan.hours_name}"


def _draw_curves(figure: "Figure", results: Results, banded: Collection[str] | None) -> tuple[ForecastLine, ...]:
    """Draw every variant with a forecast, and the budget; returns the curves drawn."""
    plan, look, axis = results.plan, look_of(results), _axis(results)
    banded = [plan.reference] if banded is None else banded

    def grid_to(end: float) -> np.ndarray:
        parts = [axis.grid(low, high) for low, high in ((axis.first, end), (end, axis.last)) if low < high]
        return np.unique(np.concatenate(parts))

    lines = kept_lines(results, grid_to, (axis.first, axis.last))
    most = most_points_of_run(sum(len(results.variant(line.variant).runs) for line in lines))
    for line in lines:
        band = None
        if line.variant in banded:
            band = kept_band(results, line.variant, axis.grid(axis.first, axis.last))
        figure.add_traces(_curves(results.variant(line.variant), line, look[line.variant], axis, most, band=band))
    if lines:
        mark(figure, plan.budget_gpu_hours, text="budget", log=True)
    return lines


def _height(num_drawn: int) -> int:
    return 130 + max(390, 30 * num_drawn)


def _last(results: Results) -> float:
    return FORECAST_TO * results.plan.budget_gpu_hours


def _axis(results: Results) -> ComputeAxis:
    last = _last(results)
    return ComputeAxis(first=_first_reading(results, last), last=last, log=True, compute_name=results.plan.compute_name)


def _first_reading(results: Results, last: float) -> float:
    computes = [run.curve.compute for run in results.runs if run.curve is not None]
    return min((float(compute[compute > 0].min()) for compute in computes if (compute > 0).any()), default=last / 1000)


def _curves(
    variant: FittedVariant,
    drawn: ForecastLine,
    style: Style,
    axis: ComputeAxis,
    most: int,
    *,
    band: ForecastBand | None,
) -> list["Scatter"]:
    """Line (solid to the largest fitted compute, dashed beyond), band, and at most `most` points of each run."""
    from plotly.graph_objects import Scatter

    traces = []
    if band is not None:
        x, y = (np.concatenate(pair) for pair in ((band.compute, band.compute[::-1]), (band.high, band.low[::-1])))
        traces.append(
            Scatter(x=x, y=y, mode="lines", fill="toself", fillcolor=style.tint(0.13), line_width=0, hoverinfo="skip")
        )
    for part, dash in ((drawn.compute <= drawn.end, "solid"), (drawn.compute >= drawn.end, "dash")):
        if part.sum() > 1:
            line = {"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash}
            hover = f"{in_hover(variant.name)}<br>%{{x:.4g}} {axis.hours_name}: %{{y:.4f}}<extra></extra>"
            x, y = drawn.compute[part], drawn.rate[part]
            traces.append(Scatter(x=x, y=y, mode="lines", line=line, hovertemplate=hover))
    curves = [(run.curve.compute, run.curve.score) for run in variant.runs if run.curve is not None]
    points = [thinned(compute[compute > 0], score[compute > 0], most)[:2] for compute, score in curves]
    if points:
        x, y = (np.concatenate(values) for values in zip(*points, strict=True))
        marker = {"symbol": style.symbol, "size": 4, "color": style.colour, "opacity": 0.45}
        traces.append(Scatter(x=x, y=np.round(y, 5), mode="markers", marker=marker, hoverinfo="skip"))
    for trace in traces:
        trace.update(legendgroup=variant.name, showlegend=False, name=plain(variant.name))
    traces[-1].update(showlegend=True, marker={"opacity": 1.0})
    return traces


def _bars(results: Results, chances: Sequence[Chance]) -> "Bar":
    """P(wins) of every variant, the likeliest winner on top."""
    from plotly.graph_objects import Bar

    look, chances = look_of(results), sorted(chances, key=lambda chance: -chance.wins)
    return Bar(
        x=[chance.wins for chance in chances],
        y=[plain(chance.variant) for chance in chances],
        orientation="h",
        marker_color=[look[chance.variant].colour for chance in chances],
        text=[f"{chance.wins:.2f}" for chance in chances],
        textposition="outside",
        hovertext=[plain(f"{chance.variant}: {chance.wins:.2f}, with {chance.rule}") for chance in chances],
        hoverinfo="text",
        showlegend=False,
    )
