"""Figures of a search, without Streamlit."""

import math
from collections.abc import Mapping
from itertools import accumulate

from ablations.report.figures.chart import GREY, Axis, Bars, Chart, Panel, Series, rows_axis
from ablations.report.figures.colours import BLUE, ORANGE
from ablations.search.objective import is_maximised, title, value_text
from ablations.search.record import SearchRecord, SearchTrial
from ablations.search.tables import BEST, PARETO_FRONT

MOST_NUMBERED = 10
"""Limit on the trials whose numbers label the axis."""


def history_chart(record: SearchRecord, objective: int = 0) -> Chart:
    """Value of each trial in the order of proposal, and the best so far."""
    done = [trial for trial in record.trials if trial.state == "done" and trial.values[objective] is not None]
    numbers, values = [record.trials.index(trial) for trial in done], [_value(trial, objective) for trial in done]
    so_far = list(accumulate(values, max if is_maximised(record.objectives[objective]) else min))
    every = max(1, len(numbers) // MOST_NUMBERED)
    panel = Panel(
        x=Axis(title="trial", ticks=tuple((number, str(number)) for number in range(0, len(record.trials), every))),
        y=Axis(title=title(record.objectives[objective])),
        marks=[
            Series(x=numbers, y=so_far, colour=BLUE, width=2.0, steps="hv", legend="best so far"),
            Series(
                x=numbers, y=values, colour=BLUE, symbol="circle", size=8.0, legend="trial", hover="{text}",
                texts=[hover_text(record, trial) for trial in done],
            ),
        ],
        height=260,
    )  # fmt: skip
    return Chart(alt=f"{panel.y.title} by trial", panels=[panel], legend="above")


def importances_chart(found: Mapping[str, float]) -> Chart:
    """The importance of each setting as a share, the largest on top."""
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    texts = [f"{name}: {share:.0%}" for name, share in ordered]
    bars = Bars(lengths=[share for _, share in ordered], colours=[BLUE] * len(ordered), hover="{text}", texts=texts)
    panel = Panel(
        x=Axis(title="importance, as a share", range=(0.0, 1.0), is_share=True),
        y=rows_axis([name for name, _ in ordered]), marks=[bars], num_rows=len(ordered), row_height=32,
    )  # fmt: skip
    return Chart(alt="Importances", panels=[panel])


def pareto_chart(record: SearchRecord) -> Chart:
    """Trials by their first two objectives; a line joins those that no other trial beats in all objectives."""
    able = [trial for trial in record.ranked if None not in trial.values]
    best = [trial.name for trial in record.best]
    front = sorted((trial for trial in able if trial.name in best), key=lambda trial: _value(trial, 0))
    others = [trial for trial in able if trial.name not in best]
    first, second = (
        f"{title(one)} ({'more' if is_maximised(one) else 'less'} is better)" for one in record.objectives[:2]
    )
    marks = [
        Series(
            x=[_value(trial, 0) for trial in trials], y=[_value(trial, 1) for trial in trials], colour=colour,
            width=width, steps="vh" if is_maximised(record.objectives[0]) else "hv", symbol="circle", size=9.0,
            legend=name, hover="{text}", texts=[hover_text(record, trial) for trial in trials],
        )
        for name, trials, width, colour in (("others", others, 0.0, GREY), (PARETO_FRONT, front, 2.0, ORANGE))
    ]  # fmt: skip
    panel = Panel(x=Axis(title=first), y=Axis(title=second), marks=marks)
    alt = f"Trials by {title(record.objectives[0])} and {title(record.objectives[1])}"
    return Chart(alt=alt, panels=[panel], legend="above")


def hover_text(record: SearchRecord, trial: SearchTrial) -> str:
    """The text `trial-004: A 0.612`, and a line for each setting."""
    found = [
        f"{title(one)} {value_text(one, value)}" for one, value in zip(record.objectives, trial.values, strict=True)
    ]
    params = [
        f"{name} {value if isinstance(value, str) else format(value, '.4g')}" for name, value in trial.params.items()
    ]
    name = f"{trial.name}, {BEST}" if len(record.best) == 1 and trial.name == record.best[0].name else trial.name
    return "\n".join([f"{name}: {', '.join(found)}", *params])


def _value(trial: SearchTrial, objective: int) -> float:
    value = trial.values[objective]
    return math.nan if value is None else value
