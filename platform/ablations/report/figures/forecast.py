"""Forecasts: every variant at more compute, and its probability of being the best there."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ablations.answers.forecasts import Chance
from ablations.findings.results import Results
from ablations.findings.sweep_forecast import ForecastLine, forecast_band, forecast_lines
from ablations.report.figures.axes import compute_axis, most_points_of_run, range_around, thinned
from ablations.report.figures.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    DottedLine,
    EdgeLabel,
    Mark,
    Panel,
    Series,
    law,
    rows_axis,
)
from ablations.report.figures.colours import Style, look_of
from ablations.text import compute_title

FORECAST_TO = 10.0
"""Where the curves end, in budgets."""
FORECAST_LEGEND = (
    "Points are evaluations. Lines are means over seeds: within the readings ScaleRL eq. 1 (arXiv 2510.13786), and "
    "dashed beyond them the forecast from where each run stands. Bands are 95 % intervals. Bars: the share of joint "
    "draws in which a variant is highest at the compute named above them."
)
"""Caption of both charts."""


def forecast_chart(results: Results, *, banded: Collection[str] | None = None) -> Chart:
    """Pass rate of every variant with a forecast against log compute to ten budgets, with its name at its end.

    `banded` are the variants with an uncertainty band (the reference by default).
    """
    plan, look, axis = results.plan, look_of(results), compute_axis(results, log=True, budgets=FORECAST_TO)

    def grid_to(end: float) -> np.ndarray:
        parts = [axis.grid(low, high) for low, high in ((axis.first, end), (end, axis.last)) if low < high]
        return np.unique(np.concatenate(parts))

    lines = forecast_lines(results, grid_to)
    most = most_points_of_run(sum(len(results.variant(line.variant).runs) for line in lines))
    marks: list[Mark] = []
    for line in lines:
        if line.variant in ([plan.reference] if banded is None else banded):
            band = forecast_band(results, line.variant, axis.grid(axis.first, axis.last))
            colour = look[line.variant].colour
            marks.append(Band(x=band.compute, low=band.low, high=band.high, colour=colour, name=line.variant))
        marks += _curve(results, line, look[line.variant], most)
    heights = [height for mark in marks for height in _heights(mark)]
    panel = Panel(
        x=Axis(
            title=compute_title(plan.compute_name), unit=plan.hours_name, is_log=True,
            range=(axis.at(-0.02), axis.last),
        ),
        y=Axis(title="held-out pass rate", range=range_around(heights, margin=0.05) if heights else None),
        marks=marks,
        rules=[DottedLine(x=plan.budget_gpu_hours, text="budget")],
        labels=[
            EdgeLabel(y=float(line.rate[-1]), name=line.variant, colour=look[line.variant].colour) for line in lines
        ],
        height=520,
    )  # fmt: skip
    return Chart(alt="Forecast pass rate against compute", panels=[panel])


def _heights(mark: Mark) -> list[float]:
    ends = (mark.low, mark.high) if isinstance(mark, Band) else (mark.y,) if isinstance(mark, Series) else ()
    return [value for values in ends for value in (float(min(values)), float(max(values)))]


def _curve(results: Results, line: ForecastLine, style: Style, most: int) -> list[Series]:
    """Line (solid to the largest fitted compute, dashed beyond), and at most `most` points of each run."""
    found = []
    look: dict[str, Any] = {"colour": style.colour, "name": line.variant}
    for part, is_fitted in ((line.compute <= line.end, True), (line.compute >= line.end, False)):
        if part.sum() > 1:
            hover = "{name}\n{x:.4g} {unit}: {y:.4f}"
            found.append(law(line.compute[part], line.rate[part], is_fitted=is_fitted, hover=hover, **look))
    curves = [run.curve for run in results.variant(line.variant).runs if run.curve is not None]
    points = [thinned(one.compute[one.compute > 0], one.score[one.compute > 0], most)[:2] for one in curves]
    if points:
        x, y = (np.concatenate(values) for values in zip(*points, strict=True))
        found.append(Series(x=x, y=y, symbol=style.symbol, size=4.0, opacity=0.45, **look))
    return found


def chances_chart(results: Results, chances: Sequence[Chance]) -> Chart:
    """P(variant wins) for each of the `chances`, the likeliest winner at the top."""
    look, chances = look_of(results), sorted(chances, key=lambda chance: -chance.wins)
    bars = Bars(
        lengths=[chance.wins for chance in chances], colours=[look[chance.variant].colour for chance in chances],
        labels=[f"{chance.wins:.2f}" for chance in chances],
        texts=[f"{chance.variant}: {chance.wins:.2f}, with {chance.rule}" for chance in chances], hover="{text}",
    )  # fmt: skip
    panel = Panel(
        x=Axis(range=(0.0, 1.15)), y=rows_axis([chance.variant for chance in chances]),
        marks=[bars] if chances else [], num_rows=len(chances), row_height=48,
    )  # fmt: skip
    return Chart(alt="Each variant's probability to lead; the table has the numbers", panels=[panel])
