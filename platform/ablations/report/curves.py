"""Pass rate against compute: measured points, fitted lines, forecasts, and asymptotes with their intervals."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ablations.fit.result import Fit
from ablations.report.axes import ComputeAxis, compute_axis, score_range_of
from ablations.report.colours import Style, styles
from ablations.report.style import dress, mark
from ablations.verdict.results import FittedRun, FittedVariant, Results

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

CURVES_LEGEND = (
    "Filled points were fitted, hollow ones were not; lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), dashes are "
    "extrapolated to twice the budget, bands are 95 % intervals of the fitted curve."
)
"""What `curves_figure` shows, for the caption below it."""
LABEL_GAP = 0.042
"""Least distance of two labels, as a share of the axis."""


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

    plan = results.plan
    banded = [plan.reference] if banded is None else banded
    drawn = [variant for variant in results.variants if shown is None or variant.name in shown]
    axis, look = compute_axis(results, log=log_compute), styles(plan)
    score_range = score_range_of(drawn, axis)
    figure = Figure()
    for variant in drawn:
        figure.add_traces(_variant_traces(variant, look[variant.name], axis, banded=variant.name in banded))
    figure.add_traces(_asymptote_traces(drawn, look, axis, score_range))
    if plan.fit_to_gpu_hours < plan.budget_gpu_hours:
        mark(figure, plan.fit_to_gpu_hours, text="fitted up to here", log=log_compute)
    mark(figure, plan.budget_gpu_hours, text="budget", log=log_compute)
    figure.update_xaxes(**axis.layout)
    figure.update_yaxes(title="held-out pass rate", range=score_range)
    dress(figure, height=620)
    figure.update_layout(
        margin={"l": 70, "r": 205, "t": 30, "b": 70},
        legend={"orientation": "h", "yanchor": "top", "y": -0.15, "x": 0, "itemsizing": "constant"},
    )
    return figure


def variant_figure(results: Results, name: str) -> "Figure":
    """One variant beside the reference, both with their uncertainty."""
    pair = {results.plan.reference, name}
    return curves_figure(results, shown=pair, banded=pair)


def _variant_traces(variant: FittedVariant, style: Style, axis: ComputeAxis, *, banded: bool) -> list["Scatter"]:
    traces = []
    for run in variant.runs:
        if run.fit is not None:
            traces += [_band(run.fit, style, axis)] if banded else []
            traces += _fitted_lines(run.fit, style, axis)
    traces += [_points(run, style, axis) for run in variant.runs if run.curve is not None]
    for trace in traces:
        trace.update(legendgroup=variant.name, showlegend=False)
    return [*traces, _legend_entry(variant.name, style)] if traces else []


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
        name=name,
        legendgroup=name,
    )


def _points(run: FittedRun, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    assert run.curve is not None
    shown = axis.drawn(run.curve.compute)
    compute, score = run.curve.compute[shown], run.curve.score[shown]
    fitted = np.full(compute.shape, False)
    if run.fit is not None:
        before_rl = (compute == 0) & (run.fit.r0 != "free")
        fitted = before_rl | (run.fit.window[0] <= compute) & (compute <= run.fit.window[1])
    fill = [style.colour if inside else "white" for inside in fitted]
    marker = {"symbol": style.symbol, "size": 6, "color": fill, "line": {"color": style.colour, "width": 1.2}}
    hover = f"{run.variant}, seed {run.seed}<br>%{{x:.4g}} {axis.hours_name}: %{{y:.4f}}<extra></extra>"
    return Scatter(x=compute, y=score, mode="markers", marker=marker, hovertemplate=hover)


def _fitted_lines(fit: Fit, style: Style, axis: ComputeAxis) -> list["Scatter"]:
    """Solid inside the window, dashed on both sides of it."""
    from plotly.graph_objects import Scatter

    start, end = fit.window
    spans = [(axis.first if axis.log else 0.0, start, "dash"), (start, end, "solid"), (end, axis.last, "dash")]
    return [
        Scatter(
            x=grid,
            y=fit.predict(grid),
            mode="lines",
            line={"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash},
            hoverinfo="skip",
        )
        for low, high, dash in spans
        if low < high
        for grid in [axis.grid(low, high)]
    ]


def _band(fit: Fit, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    grid = axis.grid(0.0, axis.last)
    low, high = fit.predict_interval(grid)
    return Scatter(
        x=np.concatenate([grid, grid[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=style.tint(0.13),
        line={"width": 0},
        hoverinfo="skip",
    )


def _asymptote_traces(
    variants: Sequence[FittedVariant], look: dict[str, Style], axis: ComputeAxis, score_range: tuple[float, float]
) -> list["Scatter"]:
    """A stroke at each asymptote at the right edge, led to a label that does not cover another."""
    from plotly.graph_objects import Scatter

    fitted = [variant for variant in variants if variant.fits]
    ends = [_right_end(variant, axis, score_range) for variant in fitted]
    gap = LABEL_GAP * (score_range[1] - score_range[0])
    heights = spread(ends, gap, score_range[0] + gap / 2, score_range[1] - gap / 2)
    return [
        Scatter(
            x=[axis.at(0.94), axis.at(0.98), axis.last],
            y=[end, end, height],
            mode="lines+text",
            line={"color": look[variant.name].colour, "width": 1.6},
            text=["", "", f" {variant.asymptote}"],
            textposition="middle right",
            textfont={"color": look[variant.name].colour},
            cliponaxis=False,
            hoverinfo="skip",
            legendgroup=variant.name,
            showlegend=False,
        )
        for variant, end, height in zip(fitted, ends, heights, strict=True)
    ]


def _right_end(variant: FittedVariant, axis: ComputeAxis, score_range: tuple[float, float]) -> float:
    """Where a variant's stroke is: at A, or at the end of its curve where A has no upper bound or no place."""
    asymptote = variant.asymptote
    if asymptote and asymptote.is_bounded and score_range[0] <= asymptote.A <= score_range[1]:
        return asymptote.A
    return float(np.mean([fit.predict(axis.last)[0] for fit in variant.fits]))


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """`values` moved as little as need be, in squares, to lie `gap` apart and, where they fit, within [low, high].

    Isotonic regression by pooling adjacent violators (Ayer et al. 1955) of the values less the gaps below them.
    """
    order = np.argsort(values, kind="stable")
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        mean, size = values[index] - place * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, num_before = blocks.pop()
            mean, size = (before * num_before + mean * size) / (num_before + size), num_before + size
        blocks.append((mean, size))
    levels = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    levels = np.clip(levels, low, max(low, high - (len(order) - 1) * gap))
    moved = np.empty(len(order))
    moved[order] = levels + gap * np.arange(len(order))
    return moved.tolist()
