"""A figure of the answers of every variant to each question, with intervals and the numbers in columns of their own."""

import math
from collections.abc import Sequence
from typing import Any

from plotly.graph_objects import Figure, Scatter

from ablations.findings.results import Results
from ablations.report.forest import ForestPanel, ForestRow, forest_panels
from ablations.report.style import dress, elided, in_hover, mark, plain

LONGEST_NAME_OF_ROW = {False: 26, True: 15}
"""Limit on the characters of a variant's name beside its row; the key is True for stacked panels."""
CHARACTER_PX = {False: 6.8, True: 6.1}
ROW_PX, HEAD_PX, FOOT_PX = 26, 34, 52
"""Height of a row, and of the space above and below the rows of a panel."""
PLOT_PX = {False: 740, True: 262}
"""Minimum width between the names and the right edge."""


def verdicts_figure(results: Results, *, shown: Sequence[str] | None = None, stacked: bool = False) -> Figure:
    """A panel for each question that has a number of any variant, with shared rows, best first.

    `shown` are the variants of the rows, all by default. An interval with one end missing is an arrow to the edge.
    Undecided answers are grey and hollow. `stacked` panels are one below the other, since a narrow screen has room for
    only one beside the names.
    """
    panels = forest_panels(results, shown=shown)
    num_rows = len(panels[0].rows) if panels else 0
    panel_px = HEAD_PX + ROW_PX * num_rows + FOOT_PX
    height = panel_px * (len(panels) if stacked else 1) if panels else HEAD_PX
    figure, traces, texts = Figure(), [], []
    dress(figure, height=height)
    size = 11 if stacked else 12
    names = [elided(row.variant, LONGEST_NAME_OF_ROW[stacked]) for row in panels[0].rows] if panels else []
    left = round(16 + CHARACTER_PX[stacked] * max(map(len, names), default=0))
    figure.update_layout(showlegend=False, margin={"l": left, "r": 4, "t": 0, "b": 0}, font_size=size)
    for place, panel in enumerate(panels):
        number = place + 1 if place else ""
        width = 1 if stacked else 1 / len(panels)
        start = 0 if stacked else place * width
        numbers_px = 14 + CHARACTER_PX[stacked] * max(len(row.text) for row in panel.rows)
        end = start + width - numbers_px / PLOT_PX[stacked]
        top = 1 - ((place * panel_px if stacked else 0) + HEAD_PX) / height
        bottom = top - ROW_PX * num_rows / height
        low, high = panel.range
        for line, row in enumerate(panel.rows):
            if row.drawn_at is not None:
                traces += _bar(row, line, (low, high), f"x{number}", f"y{number}")
        shown_names, most_ticks = names if stacked or not place else [], 3 if stacked else 2
        _axes(figure, panel, shown_names, str(number), (start, end), (bottom, top), most_ticks)
        mark(figure, panel.null, axis=f"x{number}", height_of=f"y{number} domain")
        texts += _texts(panel, f"y{number}", start=start, end=end, top=top)
    figure.add_traces(traces)
    return figure.update_layout(annotations=texts)


def _axes(
    figure: Figure,
    panel: ForestPanel,
    names: Sequence[str],
    number: str,
    across: tuple[float, float],
    down: tuple[float, float],
    most_ticks: int,
) -> None:
    """The axes of a panel: upright ticks, names only at the first panel."""
    low, high = panel.range
    ticks = {"tickvals": panel.ticks(most_ticks), "type": "log" if panel.log else "linear"}
    span = [math.log10(low), math.log10(high)] if panel.log else [low, high]
    look = {"showline": True, "gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "tickangle": 0}
    title = {"text": panel.axis_title, "standoff": 4, "font": {"size": 11}}
    figure.update_layout(
        {
            f"xaxis{number}": look
            | {"domain": across, "anchor": f"y{number}", "range": span, "title": title, "ticks": "outside"}
            | ticks,
            f"yaxis{number}": {
                "domain": down,
                "anchor": f"x{number}",
                "range": [len(panel.rows) - 0.5, -0.5],
                "tickvals": list(range(len(names))),
                "ticktext": [plain(name) for name in names],
                "fixedrange": True,
                "zeroline": False,
                "gridcolor": "#eceff2",
            },
        }
    )


def _texts(panel: ForestPanel, axis: str, *, start: float, end: float, top: float) -> list[dict[str, Any]]:
    """The panel's title above its axis, and its numbers in a column beside it."""
    bare = {"showarrow": False, "xref": "paper", "xanchor": "left", "align": "left"}
    title = {"text": f"<b>{plain(elided(panel.title, 36))}</b>", "x": start, "yref": "paper", "y": top}
    numbers = [
        {
            "text": row.text.replace("-", "−"),
            "x": end,
            "xshift": 8,
            "yref": axis,
            "y": line,
            "yanchor": "middle",
            "font": {"color": "#1f2328" if row.is_decided else "#8a8a8a"},
        }
        for line, row in enumerate(panel.rows)
    ]
    return [bare | one for one in ({"yanchor": "bottom", **title}, *numbers)]


def _bar(row: ForestRow, place: int, ends: tuple[float, float], x: str, y: str) -> list[Scatter]:
    """An interval in row `place` and the point in it; an unknown end goes to the edge, with an arrow."""
    colour = row.colour
    low, high = ends[0] if row.lo is None else row.lo, ends[1] if row.hi is None else row.hi
    points = [] if row.estimate is None else [(row.estimate, "circle" if row.is_decided else "circle-open")]
    points += [(ends[0], "triangle-left")] if row.lo is None else []
    points += [(ends[1], "triangle-right")] if row.hi is None else []
    hover = f"{in_hover(row.variant)}: {row.text}<extra></extra>"
    bar = Scatter(
        x=[low, high], y=[place] * 2, mode="lines", line={"color": colour, "width": 2}, xaxis=x, yaxis=y,
        hovertemplate=hover, name=plain(row.variant),
    )  # fmt: skip
    if not points:
        return [bar]
    marks = Scatter(
        x=[at for at, _ in points], y=[place] * len(points), mode="markers", xaxis=x, yaxis=y, hovertemplate=hover,
        marker={"color": colour, "symbol": [symbol for _, symbol in points], "size": 8}, name=plain(row.variant),
        cliponaxis=False,
    )  # fmt: skip
    return [bar, marks]
