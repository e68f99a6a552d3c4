"""Figures of forecasts: every variant at more compute, and its probability of being the best there."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Bar, Figure, Scatter

from ablations.answers.forecasts import Chance
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import ForecastBand, ForecastLine, forecast_band, forecast_lines
from ablations.report.colours import Style, look_of
from ablations.report.series import compute_axis, most_points_of_run, thinned
from ablations.report.style import dress, elided, end_label, in_hover, leader, mark, moved_apart, plain
from ablations.text import compute_title

FORECAST_TO = 10.0
"""End of the curves, in budgets."""
LABEL_PX, LONGEST_LABEL, LABEL_FONT = 19, 15, 11
"""Height of the label of a curve, its most characters, and its size."""
FORECAST_LEGEND = (
    "Points are evaluations; lines are forecasts, mean over seeds, dashed where extrapolated: by ScaleRL eq. 1 "
    "(arXiv 2510.13786), or beyond the fitted range by the median over several families of curves where eq. 1 leaves "
    "their 80 % band. Bands are 95 % intervals, which include those families. Bars: the share of joint draws in which "
    "a variant is highest at the compute named above them."
)
"""Caption of both figures."""


def forecast_figure(results: Results, *, banded: Collection[str] | None = None) -> Figure:
    """Pass rate of every variant with a forecast against log compute to ten budgets, with its name at its end.

    `banded` are the variants with an uncertainty band (the reference by default).
    """
    plan, look, axis = results.plan, look_of(results), compute_axis(results, log=True, budgets=FORECAST_TO)
    banded = [plan.reference] if banded is None else banded

    def grid_to(end: float) -> np.ndarray:
        parts = [axis.grid(low, high) for low, high in ((axis.first, end), (end, axis.last)) if low < high]
        return np.unique(np.concatenate(parts))

    figure, lines = Figure(), forecast_lines(results, grid_to)
    most = most_points_of_run(sum(len(results.variant(line.variant).runs) for line in lines))
    for line in lines:
        band = None
        if line.variant in banded:
            band = forecast_band(results, line.variant, axis.grid(axis.first, axis.last))
        variant = results.variant(line.variant)
        figure.add_traces(_curves(variant, line, look[line.variant], plan.hours_name, most, band=band))
    height, margin = 130 + max(390, 30 * len(lines)), {"l": 60, "r": 130, "t": 12, "b": 50}
    dress(figure, height=height)
    ends = np.log10([axis.at(-0.02), axis.last]).tolist()
    title = compute_title(plan.compute_name)
    figure.update_xaxes(title=title, type="log", range=ends, dtick="D2", title_standoff=6)
    figure.update_yaxes(title="held-out pass rate", title_standoff=6)
    figure.update_layout(margin=margin, showlegend=False)
    if lines:
        mark(figure, plan.budget_gpu_hours, text="budget", log=True)
        _label_ends(figure, results, lines, plot=height - margin["t"] - margin["b"])
    return figure


def _label_ends(figure: Figure, results: Results, lines: Sequence[ForecastLine], *, plot: int) -> None:
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


def chances_figure(results: Results, chances: Sequence[Chance]) -> Figure:
    """P(variant wins) of each of the `chances`, the likeliest winner on top."""
    look, chances = look_of(results), sorted(chances, key=lambda chance: -chance.wins)
    bar = Bar(
        x=[chance.wins for chance in chances],
        y=[plain(chance.variant) for chance in chances],
        orientation="h",
        marker_color=[look[chance.variant].colour for chance in chances],
        text=[f"{chance.wins:.2f}" for chance in chances],
        textposition="outside",
        hovertext=[plain(f"{chance.variant}: {chance.wins:.2f}, with {chance.rule}") for chance in chances],
        hoverinfo="text",
    )
    figure = Figure([bar] if chances else [])
    dress(figure, height=90 + 48 * len(chances))
    figure.update_xaxes(range=[0, 1.15], nticks=6)
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=4)
    figure.update_layout(margin={"l": 10, "r": 10, "t": 10, "b": 40})
    return figure


def _curves(
    variant: FittedVariant, drawn: ForecastLine, style: Style, unit: str, most: int, *, band: ForecastBand | None
) -> list[Scatter]:
    """Line (solid to the largest fitted compute, dashed beyond), band, and at most `most` points of each run."""
    traces = []
    if band is not None:
        x, y = (np.concatenate(pair) for pair in ((band.compute, band.compute[::-1]), (band.high, band.low[::-1])))
        traces.append(
            Scatter(x=x, y=y, mode="lines", fill="toself", fillcolor=style.tint(0.13), line_width=0, hoverinfo="skip")
        )
    for part, dash in ((drawn.compute <= drawn.end, "solid"), (drawn.compute >= drawn.end, "dash")):
        if part.sum() > 1:
            line = {"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash}
            hover = f"{in_hover(variant.name)}<br>%{{x:.4g}} {unit}: %{{y:.4f}}<extra></extra>"
            x, y = drawn.compute[part], drawn.rate[part]
            traces.append(Scatter(x=x, y=y, mode="lines", line=line, hovertemplate=hover))
    curves = [(run.curve.compute, run.curve.score) for run in variant.runs if run.curve is not None]
    points = [thinned(compute[compute > 0], score[compute > 0], most)[:2] for compute, score in curves]
    if points:
        x, y = (np.concatenate(values) for values in zip(*points, strict=True))
        marker = {"symbol": style.symbol, "size": 4, "color": style.colour, "opacity": 0.45}
        traces.append(Scatter(x=x, y=np.round(y, 5), mode="markers", marker=marker, hoverinfo="skip"))
    for trace in traces:
        trace.update(name=plain(variant.name))
    return traces
