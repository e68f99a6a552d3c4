"""Figures of the settings of many runs: parallel coordinates, and the share of the differences that goes with each."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from plotly.graph_objects import Figure, Parcoords

from ablations.report.figures.axes import ticks
from ablations.report.figures.chart import Axis, Chart, Panel, interval, rows_axis
from ablations.report.figures.colours import BLUE
from ablations.report.figures.plotly_chart import plain
from ablations.text import setting_text
from ablations_dashboard.run_table.importance import Importance

DECADES = 30.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""
MOST_NAMED_VALUES = 12
SHARES_LEGEND = (
    "Share of the differences between variants that goes with a setting alone, with its 95 % interval; what other "
    "settings change counts as chance. An interval that reaches 0 shows no effect. Settings that change together share "
    "the credit."
)
"""Caption of `shares_chart`."""


def shares_chart(found: Sequence[Importance]) -> Chart:
    """The share of each setting with its interval, the largest on top."""
    marks = [
        mark
        for at, one in enumerate(found)
        for mark in interval(
            one.share.lo, one.share.estimate, one.share.hi, at=at, edges=(0.0, 1.0), colour=BLUE, name=one.setting,
            hover="{name}: {x:.2f}", is_filled=bool(one.share.lo),
        )
    ]  # fmt: skip
    x = Axis(title="share of the differences between variants", range=(0.0, 1.0), is_share=True)
    panel = Panel(x=x, y=rows_axis([one.setting for one in found]), marks=marks, num_rows=len(found), row_height=32)
    return Chart(alt="Share of the differences between variants that goes with each setting", panels=[panel])


def parallel_coordinates(table: pd.DataFrame, settings: Sequence[str], measure: str) -> Figure:
    """A line per run through the values of its settings to its result, coloured by the result; a reader drags along an
    axis to keep the runs that pass there. Words and numbers of few values are in order at equal distances."""
    known = table.dropna(subset=[measure])
    dimensions = [_dimension(name, pd.Series(known[name])) for name in settings]
    rates = known[measure].to_numpy(dtype=float)
    dimensions.append({"label": plain(measure), **_with_round_numbers(rates)})
    line = {"color": rates, "colorscale": "Cividis", "showscale": False}
    figure = Figure(Parcoords(dimensions=dimensions, line=line, labelangle=-15, labelside="bottom"))
    return figure.update_layout(height=420, margin={"l": 80, "r": 60, "t": 30, "b": 90})


def _with_round_numbers(values: np.ndarray) -> dict[str, object]:
    """An axis with numbers of its own. Plotly would write both ends of any other axis, the lower one over its name."""
    numbers = ticks(float(np.nanmin(values)), float(np.nanmax(values)), 7, log=False)
    return {"values": values, "tickvals": numbers, "ticktext": [f"{number:g}" for number in numbers]}


def _dimension(name: str, values: pd.Series) -> dict[str, object]:
    label = {"label": plain(name)}
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > MOST_NAMED_VALUES:
        numbers = values.to_numpy(dtype=float)
        if np.nanmin(numbers) > 0 and np.nanmax(numbers) >= DECADES * np.nanmin(numbers):
            low, high = math.floor(np.log10(np.nanmin(numbers))), math.ceil(np.log10(np.nanmax(numbers)))
            powers = list(range(low, high + 1))
            texts = [f"{10.0**power:g}" for power in powers]
            return {**label, "values": np.log10(numbers), "tickvals": powers, "ticktext": texts}
        return {**label, **_with_round_numbers(numbers)}
    places = {value: place for place, value in enumerate(sorted(values.dropna().unique().tolist()))}
    texts = [plain(setting_text(value)) for value in places]
    missing = len(places)  # a run whose recipe lacks the setting
    codes = [places.get(value, missing) for value in values]
    if missing in codes:
        texts.append("–")
    return {**label, "values": codes, "tickvals": list(range(len(texts))), "ticktext": texts}
