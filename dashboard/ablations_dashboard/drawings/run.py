"""Figures of one run, and of one training metric of several runs, without Streamlit."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from plotly.graph_objects import Bar, Figure, Scatter
from plotly.subplots import make_subplots

from ablations.report.colours import BLUE, COLOURS, ORANGE, Style
from ablations.report.style import dress, plain

Axis = Literal["compute_gpu_hours", "step", "wall_s"]
RAW_OPACITY = 0.25
MOST_DRAWN = 600
"""Limit on the points of a line; a figure has too few columns of pixels to tell more apart."""
IDLE = frozenset({"wait_prompts", "wait_weights", "wait_rollouts", "wait_evaluator", "dead"})
"""Activities in which a device contributes nothing."""


def axis_titles(compute_name: str) -> dict[Axis, str]:
    """Axis titles for a training metric; `compute_name` is the sweep's name for compute."""
    return {
        "compute_gpu_hours": f"compute ({compute_name})",
        "step": "optimiser step",
        "wall_s": "seconds trained",
    }


def framed(figure: Figure, *, height: int, x: str, y: str) -> Figure:
    """Give a figure the frame of the pages, with titles of its axes."""
    dress(figure, height=height)
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure.update_layout(margin={"l": 60, "r": 25, "t": 15, "b": 50}, showlegend=False)


def metric_figure(
    metric: str,
    runs: Mapping[str, tuple[pd.DataFrame, Style]],
    *,
    axis: Axis,
    smoothed: int,
    compute_name: str,
) -> Figure:
    """One training metric of several runs, by label: the measured line faint, a mean over `smoothed` steps on top."""
    figure = Figure()
    for label, (rows, style) in runs.items():
        if metric not in rows:
            continue
        line = {"color": style.colour, "width": 2}
        if smoothed > 1:
            figure.add_trace(
                Scatter(
                    x=rows[axis], y=rows[metric], mode="lines", line={**line, "width": 1}, opacity=RAW_OPACITY,
                    legendgroup=label, showlegend=False, hoverinfo="skip",
                )
            )  # fmt: skip
        mean = rows[metric].rolling(smoothed, min_periods=1, center=True).mean()
        figure.add_trace(Scatter(x=rows[axis], y=mean, mode="lines", line=line, name=plain(label), legendgroup=label))
    legend = {"orientation": "h", "yanchor": "top", "y": -0.22, "x": 0}
    framed(figure, height=480, x=axis_titles(compute_name)[axis], y=metric)
    return figure.update_layout(hovermode="x unified", showlegend=True, legend=legend)


def thinned_rows(rows: pd.DataFrame, axis: Axis, metric: str, most: int = MOST_DRAWN) -> pd.DataFrame:
    """Mean, minimum and maximum of a metric, and the mean of the axis, over at most `most` groups of neighbours."""
    known = pd.DataFrame(rows[[axis, metric]]).dropna()
    bins = np.arange(len(known)) * min(most, len(known)) // max(1, len(known))
    shown = {axis: (axis, "mean"), "mean": (metric, "mean"), "least": (metric, "min"), "most": (metric, "max")}
    return pd.DataFrame(known.groupby(bins).agg(**shown))


def metric_rows_figure(
    rows: pd.DataFrame,
    titles: Mapping[str, str],
    *,
    axis: Axis,
    title: str,
    smoothed: int,
    height: int,
    marks: Sequence[float] = (),
) -> Figure:
    """The metrics of `titles`, one under the other with a common horizontal axis: zooming one zooms all.

    Each has the measured line (or the range of thinned steps) faint, and a mean over `smoothed` steps. `titles` are
    their headings, `height` is that of the figure in pixels, `marks` are places on the axis with a dotted line.
    """
    number = max(1, len(titles))
    gap = min(60 / height, 0.5 / number)
    figure = make_subplots(rows=number, cols=1, shared_xaxes=True, vertical_spacing=gap)
    for place, metric in enumerate(titles, start=1):
        figure.add_traces(metric_traces(rows, metric, axis, smoothed), rows=place, cols=1)
    dress(figure, height=height)
    figure.update_layout(margin={"l": 55, "r": 15, "t": 30, "b": 45}, showlegend=False)
    figure.update_xaxes(showticklabels=True)
    figure.update_xaxes(title=title, row=number, col=1)
    figure.update_yaxes(nticks=4)
    # A range of its own would undo the reader's zoom with each new step.
    figure.update_xaxes(rangemode="tozero")
    for place, (metric, heading) in enumerate(titles.items(), start=1):
        known = rows[metric].dropna().to_numpy()
        if known.size and known.min() == known.max() >= 0:
            figure.update_yaxes(rangemode="tozero", row=place, col=1)  # of one value, the range goes below 0 otherwise
        over = {"xref": "paper", "yref": f"y{'' if place == 1 else place} domain", "x": 0, "y": 1}
        figure.add_annotation(
            text=heading, xanchor="left", yanchor="bottom", showarrow=False, font={"size": 12}, **over
        )
    _mark_places(figure, marks)
    return figure


def metric_traces(rows: pd.DataFrame, metric: str, axis: Axis, smoothed: int) -> list[Scatter]:
    """The lines of one metric: the faint ones, then the mean."""
    drawn, traces = thinned_rows(rows, axis, metric), []
    if len(drawn) < len(rows):
        edge = {"x": drawn[axis], "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        traces += [
            Scatter(y=drawn["least"], **edge),
            Scatter(y=drawn["most"], fill="tonexty", fillcolor="rgba(0,114,178,0.18)", **edge),
        ]
    elif smoothed > 1:
        faint = {"mode": "lines", "line": {"width": 1, "color": BLUE}, "opacity": 0.3, "hoverinfo": "skip"}
        traces.append(Scatter(x=drawn[axis], y=drawn["mean"], **faint))
    width = max(1, smoothed * len(drawn) // max(1, len(rows)))
    line = pd.Series(drawn["mean"]).rolling(width, min_periods=1, center=True).mean()
    traces.append(Scatter(x=drawn[axis], y=line, mode="lines", line={"color": BLUE, "width": 2}, name=metric))
    return traces


def _mark_places(figure: Figure, marks: Sequence[float]) -> None:
    for x in marks:
        line = {"color": ORANGE, "width": 1.5, "dash": "dot"}
        figure.add_shape(type="line", x0=x, x1=x, y0=0, y1=1, xref="x", yref="paper", line=line)


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
    framed(figure, height=140 + 50 * len(device_s), x="share of device time", y="")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(automargin=True)
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    return figure.update_layout(barmode="stack", showlegend=True, legend=legend, margin={"t": 60, "r": 25})


def pass_rate_figure(
    rows: Sequence[Mapping[str, Any]], compute_name: str, *, height: int, marks: Sequence[float] = ()
) -> Figure:
    """Pass rate of each evaluated task against compute, downstream files dashed; a dotted line at each of `marks`."""
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
    framed(figure, height=height, x=f"compute ({compute_name})", y="held-out pass rate")
    figure.update_layout(showlegend=len(names) > 1, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    if len(names) > 1:
        figure.update_layout(margin={"t": 50})
    _mark_places(figure, marks)
    return figure
