"""Figures of a search, without Streamlit."""

import math
from collections.abc import Mapping
from itertools import accumulate

from plotly.graph_objects import Bar, Figure, Scatter

from ablations.report.colours import BLUE, ORANGE
from ablations.report.style import GREY
from ablations.search.objective import is_maximised, title, value_text
from ablations.search.record import SearchRecord, SearchTrial
from ablations.search.tables import BEST, PARETO_FRONT
from ablations_dashboard.drawings.run import framed

LEGEND_ABOVE = {"orientation": "h", "y": 1.1, "x": 0}
"""Layout of a legend above a figure."""


def history_figure(record: SearchRecord, objective: int = 0) -> Figure:
    """Value of each trial in the order of proposal, and the best so far."""
    done = [trial for trial in record.trials if trial.state == "done" and trial.values[objective] is not None]
    numbers, values = [record.trials.index(trial) for trial in done], [_value(trial, objective) for trial in done]
    so_far = list(accumulate(values, max if is_maximised(record.objectives[objective]) else min))
    figure = Figure()
    figure.add_trace(
        Scatter(x=numbers, y=so_far, mode="lines", line={"color": BLUE, "shape": "hv"}, name="best so far")
    )
    figure.add_trace(
        Scatter(
            x=numbers,
            y=values,
            mode="markers",
            marker={"color": BLUE, "size": 8},
            name="trial",
            text=[hover_text(record, trial) for trial in done],
            hovertemplate="%{text}<extra></extra>",
        )
    )
    framed(figure, x="trial", y=title(record.objectives[objective]), height=340)
    whole = max(1, len(numbers) // 10)
    return figure.update_layout(showlegend=True, legend=LEGEND_ABOVE, xaxis_dtick=whole)


def importances_figure(found: Mapping[str, float]) -> Figure:
    """The importance of each setting as a share, the largest on top."""
    ordered = sorted(found.items(), key=lambda pair: pair[1])
    figure = Figure(
        Bar(
            x=[share for _, share in ordered],
            y=[name for name, _ in ordered],
            orientation="h",
            marker={"color": BLUE},
            hovertemplate="%{y}: %{x:.0%}<extra></extra>",
        )
    )
    framed(figure, x="importance, as a share", y="", height=110 + 32 * len(found))
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(automargin=True)
    return figure


def pareto_figure(record: SearchRecord) -> Figure:
    """Trials by their first two objectives; a line joins those that no other trial beats in all objectives."""
    able = [trial for trial in record.ranked if None not in trial.values]
    best = [trial.name for trial in record.best]
    front = sorted((trial for trial in able if trial.name in best), key=lambda trial: _value(trial, 0))
    others = [trial for trial in able if trial.name not in best]
    figure = Figure()
    looks = {"others": (others, "markers", GREY), PARETO_FRONT: (front, "lines+markers", ORANGE)}
    for name, (trials, mode, colour) in looks.items():
        figure.add_trace(
            Scatter(
                x=[_value(trial, 0) for trial in trials],
                y=[_value(trial, 1) for trial in trials],
                mode=mode,
                name=name,
                marker={"color": colour, "size": 9},
                line={"color": colour, "shape": "vh" if is_maximised(record.objectives[0]) else "hv"},
                text=[hover_text(record, trial) for trial in trials],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    first, second = (
        f"{title(one)} ({'more' if is_maximised(one) else 'less'} is better)" for one in record.objectives[:2]
    )
    framed(figure, x=first, y=second, height=420)
    return figure.update_layout(showlegend=True, legend=LEGEND_ABOVE)


def hover_text(record: SearchRecord, trial: SearchTrial) -> str:
    """The text `trial-004: A 0.612`, and a line for each setting; `<` becomes `‹`, since Plotly interprets markup."""
    found = [
        f"{title(one)} {value_text(one, value)}" for one, value in zip(record.objectives, trial.values, strict=True)
    ]
    params = [
        f"{name} {value if isinstance(value, str) else format(value, '.4g')}" for name, value in trial.params.items()
    ]
    name = f"{trial.name}, {BEST}" if len(record.best) == 1 and trial.name == record.best[0].name else trial.name
    lines = [f"{name}: {', '.join(found)}", *params]
    return "<br>".join(line.replace("<", "‹") for line in lines)


def _value(trial: SearchTrial, objective: int) -> float:
    value = trial.values[objective]
    return math.nan if value is None else value
