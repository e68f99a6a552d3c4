"""Figures of one run, without Streamlit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from plotly.graph_objects import Bar, Figure, Heatmap, Scatter

from ablations.report.colours import BLUE, COLOURS
from ablations.report.style import dress
from ablations_dashboard.drawings.metrics import Axis

MOST_DRAWN = 600
"""Limit on the points of a line; a figure has too few columns of pixels to tell more apart."""
MOST_BINS = 120
"""Limit on the columns of a heat map."""
IDLE = frozenset({"wait_prompts", "wait_weights", "wait_rollouts", "wait_evaluator", "dead"})
"""Activities in which a device contributes nothing."""


def thinned_rows(rows: pd.DataFrame, axis: Axis, metric: str, most: int = MOST_DRAWN) -> pd.DataFrame:
    """Mean, minimum and maximum of a metric over groups of neighbouring steps, at most `most`, with the mean of the
    axis.
    """
    known = pd.DataFrame(rows[[axis, metric]]).dropna()
    bins = np.arange(len(known)) * min(most, len(known)) // max(1, len(known))
    places = [np.flatnonzero(bins == place) for place in np.unique(bins)]
    compute, values = known[axis].to_numpy(), known[metric].to_numpy()
    return pd.DataFrame(
        {
            axis: [compute[own].mean() for own in places],
            "mean": [values[own].mean() for own in places],
            "least": [values[own].min() for own in places],
            "most": [values[own].max() for own in places],
        }
    )


def run_metric_figure(rows: pd.DataFrame, metric: str, *, axis: Axis, title: str, smoothed: int) -> Figure:
    """One metric over the steps of a run: the measured line (or the range of thinned steps) faint, and a mean over
    `smoothed` steps.
    """
    drawn, figure = thinned_rows(rows, axis, metric), Figure()
    if len(drawn) < len(rows):
        edge = {"x": drawn[axis], "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        figure.add_trace(Scatter(y=drawn["least"], **edge))
        figure.add_trace(Scatter(y=drawn["most"], fill="tonexty", fillcolor="rgba(0,114,178,0.18)", **edge))
    elif smoothed > 1:
        faint = {"mode": "lines", "line": {"width": 1, "color": BLUE}, "opacity": 0.3, "hoverinfo": "skip"}
        figure.add_trace(Scatter(x=drawn[axis], y=drawn["mean"], **faint))
    width = max(1, smoothed * len(drawn) // max(1, len(rows)))
    line = pd.Series(drawn["mean"]).rolling(width, min_periods=1, center=True).mean()
    figure.add_trace(Scatter(x=drawn[axis], y=line, mode="lines", line={"color": BLUE, "width": 2}, name=metric))
    return _laid_out(figure, height=240, x=title, y=metric)


def staleness_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Share of tokens by lag, the trainer's version minus the token's, over the steps; the columns add up to 1."""
    steps = [row["step"] for row in rows if row.get("staleness")]
    histograms = [{int(lag): count for lag, count in row["staleness"].items()} for row in rows if row.get("staleness")]
    lags = list(range(max((max(one) for one in histograms), default=0) + 1))
    shares = np.array([[one.get(lag, 0) / sum(one.values()) for lag in lags] for one in histograms])
    bins = np.arange(len(steps)) * min(MOST_BINS, len(steps)) // max(1, len(steps))
    places = np.unique(bins)
    figure = Figure(
        Heatmap(
            x=[float(np.mean(np.array(steps)[bins == place])) for place in places],
            y=lags,
            z=np.array([shares[bins == place].mean(axis=0) for place in places]).T,
            zmin=0,
            colorscale="Cividis",
            colorbar={"title": "share", "thickness": 12},
            hovertemplate="step %{x:.0f}<br>lag %{y}: %{z:.1%} of tokens<extra></extra>",
        )
    )
    _laid_out(figure, height=260, x="optimiser step", y="lag, versions")
    figure.update_yaxes(dtick=max(1, len(lags) // 8))
    return figure


def hours_figure(device_s: Mapping[str, Mapping[str, float]]) -> Figure:
    """Shares of each role's device time by activity; waiting time is hatched."""
    activities = list(dict.fromkeys(activity for of_role in device_s.values() for activity in of_role))
    activities.sort(key=lambda activity: activity in IDLE)
    figure = Figure()
    for place, activity in enumerate(activities):
        shares = [of_role.get(activity, 0.0) / (sum(of_role.values()) or 1.0) for of_role in device_s.values()]
        figure.add_trace(
            Bar(
                y=list(device_s),
                x=shares,
                orientation="h",
                name=activity.replace("_", " "),
                marker={
                    "color": COLOURS[place % len(COLOURS)],
                    "pattern": {"shape": "/" if activity in IDLE else ""},
                },
                hovertemplate="%{y}: %{x:.1%}<extra>" + activity.replace("_", " ") + "</extra>",
            )
        )
    figure.update_layout(barmode="stack")
    _laid_out(figure, height=140 + 50 * len(device_s), x="share of device time", y="")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(automargin=True)
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    figure.update_layout(showlegend=True, legend=legend, margin={"t": 60, "r": 25})
    return figure


def tasks_figure(rows: Sequence[Mapping[str, Any]], compute_name: str) -> Figure:
    """Pass rate of each evaluated task, with downstream files dashed."""
    figure = Figure()
    names = list(dict.fromkeys((row["kind"], row["task"]) for row in rows))
    for place, (kind, task) in enumerate(names):
        own = [row for row in rows if (row["kind"], row["task"]) == (kind, task)]
        figure.add_trace(
            Scatter(
                x=[row["compute_gpu_hours"] for row in own],
                y=[row["pass_rate"] for row in own],
                mode="lines+markers",
                name=task if kind == "eval" else f"{task} (only measured)",
                marker={"size": 5},
                line={
                    "color": COLOURS[place % len(COLOURS)],
                    "dash": "solid" if kind == "eval" else "dash",
                },
            )
        )
    _laid_out(figure, height=320, x=f"compute ({compute_name})", y="pass rate")
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.3, "x": 0})
    return figure


def _laid_out(figure: Figure, *, height: int, x: str, y: str) -> Figure:
    """Give a figure the frame that all share."""
    dress(figure, height=height)
    figure.update_layout(margin={"l": 60, "r": 15, "t": 15, "b": 45}, showlegend=False)
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure
