"""Drawings of training metrics, without Streamlit."""

from collections.abc import Mapping
from typing import Literal

import pandas as pd
from plotly.graph_objects import Figure, Scatter

from ablations.report.colours import Style
from ablations.report.style import dress, plain

Axis = Literal["compute_gpu_hours", "step", "wall_s"]
RAW_OPACITY = 0.25


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
