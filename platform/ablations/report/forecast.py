"""Figures of forecasts: every variant at more compute, and its chance to lead there."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ablations.answers.forecasts import estimated, joint_draws, leaderboard
from ablations.answers.run_to_run import RunToRun
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import forecast_groups, spread_of
from ablations.fit.result import Fit
from ablations.report.axes import ComputeAxis
from ablations.report.colours import Style
from ablations.report.leading import look_of
from ablations.report.style import dress, in_hover, mark, plain
from ablations.text import compute_text

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Scatter

FORECAST_TO = 10.0
"""End of the curves, in budgets."""
LEGEND = {"orientation": "h", "yanchor": "top", "y": -0.17, "x": 0, "itemsizing": "constant"}
"""Layout of the legend, below the figure."""
FORECAST_LEGEND = (
    "Points were measured, lines are forecasts, mean over seeds, dashed where they are extrapolated: by ScaleRL eq. 1 "
    "(arXiv 2510.13786), or beyond the fitted range by the median over several families of curves where eq. 1 leaves "
    "their 80 % band. Bands are 95 % intervals, which hold those families too. Bars: the share of joint draws in which "
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
    _draw_curves(figure, results, groups, banded)
    if groups:
        figure.add_trace(_bars(results, groups, compute), row=1, col=2)
    dress(figure, height=_height(groups))
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

    figure, groups = Figure(), forecast_groups(results)
    _draw_curves(figure, results, groups, banded)
    dress(figure, height=_height(groups))
    figure.update_xaxes(**_axis(results).layout)
    figure.update_yaxes(title="held-out pass rate")
    figure.update_layout(margin={"l": 60, "r": 15, "t": 20, "b": 60}, legend=LEGEND)
    return figure


def chances_figure(results: Results, *, compute: float | None = None) -> "Figure":
    """The right half of `forecast_figure`: P(variant wins) at `compute`, by default ten budgets."""
    from plotly.graph_objects import Figure

    groups = forecast_groups(results)
    figure = Figure([_bars(results, groups, compute)] if groups else [])
    dress(figure, height=90 + 48 * len(groups))
    figure.update_xaxes(range=[0, 1.15], nticks=6)
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=4)
    figure.update_layout(margin={"l": 10, "r": 10, "t": 10, "b": 40})
    return figure


def wins_title(results: Results, compute: float | None = None) -> str:
    """Title of the bars: `P(wins) at 4,000 GPU-hours`."""
    return f"P(wins) at {compute_text(compute or _last(results))} {results.plan.hours_name}"


def _draw_curves(
    figure: "Figure", results: Results, groups: Mapping[str, list[Fit]], banded: Collection[str] | None
) -> None:
    """Draw every variant with a forecast, and the budget."""
    plan, look, axis = results.plan, look_of(results), _axis(results)
    banded, spread = [plan.reference] if banded is None else banded, spread_of(results)
    for variant in results.variants:
        if fits := groups.get(variant.name):
            band = spread if variant.name in banded else None
            figure.add_traces(_curves(variant, fits, look[variant.name], axis, band=band))
    if groups:
        mark(figure, plan.budget_gpu_hours, text="budget", log=True)


def _height(groups: Mapping[str, list[Fit]]) -> int:
    return 130 + max(390, 30 * len(groups))


def _last(results: Results) -> float:
    return FORECAST_TO * results.plan.budget_gpu_hours


def _axis(results: Results) -> ComputeAxis:
    last = _last(results)
    return ComputeAxis(first=_first_reading(results, last), last=last, log=True, compute_name=results.plan.compute_name)


def _first_reading(results: Results, last: float) -> float:
    computes = [run.curve.compute for run in results.runs if run.curve is not None]
    return min((float(compute[compute > 0].min()) for compute in computes if (compute > 0).any()), default=last / 1000)


def _curves(
    variant: FittedVariant, fits: Sequence[Fit], style: Style, axis: ComputeAxis, *, band: RunToRun | None
) -> list["Scatter"]:
    """Line (solid to the largest fitted compute, dashed beyond) and readings of a variant; with a band if `band` gives
    the run-to-run spread.
    """
    from plotly.graph_objects import Scatter

    end = max(fit.window[1] for fit in fits)
    traces = []
    if band is not None:
        grid = axis.grid(axis.first, axis.last)
        low, high = np.quantile(joint_draws(fits, grid, spread=band), (0.025, 0.975), axis=0)
        outline = {"x": np.concatenate([grid, grid[::-1]]), "y": np.concatenate([high, low[::-1]])}
        traces.append(
            Scatter(**outline, mode="lines", fill="toself", fillcolor=style.tint(0.13), line_width=0, hoverinfo="skip")
        )
    for low, high, dash in ((axis.first, end, "solid"), (end, axis.last, "dash")):
        if low < high:
            grid = axis.grid(low, high)
            line = {"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash}
            estimate = estimated(fits, grid)
            hover = f"{in_hover(variant.name)}<br>%{{x:.4g}} {axis.hours_name}: %{{y:.4f}}<extra></extra>"
            traces.append(Scatter(x=grid, y=estimate, mode="lines", line=line, hovertemplate=hover))
    for run in variant.runs:
        if run.curve is not None:
            shown = run.curve.compute > 0
            marker = {"symbol": style.symbol, "size": 5, "color": style.colour, "opacity": 0.55}
            compute, score = run.curve.compute[shown], run.curve.score[shown]
            traces.append(Scatter(x=compute, y=score, mode="markers", marker=marker, hoverinfo="skip"))
    for trace in traces:
        trace.update(legendgroup=variant.name, showlegend=False, name=plain(variant.name))
    traces[-1].update(showlegend=True, marker={"opacity": 1.0})
    return traces


def _bars(results: Results, groups: Mapping[str, list[Fit]], compute: float | None) -> "Bar":
    """P(wins) of every variant, the likeliest winner on top."""
    from plotly.graph_objects import Bar

    look, chances = look_of(results), leaderboard(groups, compute or _last(results), spread_of(results))
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
