"""A figure of the answers of every variant to each question, with intervals."""

from typing import TYPE_CHECKING

from ablations.findings.results import Results
from ablations.report.forest import ForestPanel, ForestRow, forest_panels
from ablations.report.style import dress, elided, in_hover, mark, plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

ARROWS = {"right": "arrow-right", "left": "arrow-left"}
LONGEST_NAME_OF_ROW = 28
"""Limit on the characters of a variant's name beside its row."""


def verdicts_figure(results: Results, *, stacked: bool = False) -> "Figure":
    """A panel for each question.

    An interval with one end missing is an arrow at the known end. `stacked` panels stand one below the other, since a
    narrow screen has room for one beside its names.
    """
    from plotly.subplots import make_subplots

    panels = forest_panels(results)
    number, num_rows = len(panels), len(panels[0].rows)
    titles = [plain(elided(panel.title, 48)) for panel in panels]
    height = 130 + 46 * max(num_rows, 1)
    if stacked:
        figure = make_subplots(rows=number, vertical_spacing=120 / (number * height), subplot_titles=titles)
    else:
        figure = make_subplots(cols=number, horizontal_spacing=0.13, subplot_titles=titles)
    places = [(1 + index, 1) if stacked else (1, 1 + index) for index in range(number)]
    for index, (panel, (row, col)) in enumerate(zip(panels, places, strict=True)):
        for line, one in enumerate(panel.rows):
            if one.drawn_at is not None:
                figure.add_trace(_bar(one, line), row=row, col=col)
        mark(
            figure, panel.null, axis=f"x{index + 1 if index else ''}", height_of=f"y{index + 1 if index else ''} domain"
        )
    dress(figure, height=number * height if stacked else height)
    rows = {"tickvals": list(range(num_rows)), "range": [num_rows - 0.5, -0.5], "automargin": True}
    for index, (panel, (row, col)) in enumerate(zip(panels, places, strict=True)):
        names = _row_names(panel, with_name=stacked or index == 0)
        figure.update_xaxes(title=panel.axis_title, type="log" if panel.log else "linear", row=row, col=col)
        figure.update_yaxes(ticktext=names, **rows, row=row, col=col)
    if stacked:
        figure.update_annotations(x=1.0, xanchor="right", font_size=14)
        figure.update_xaxes(title_font_size=11, title_standoff=4)
    else:
        figure.update_yaxes(side="right", row=1, col=number)
    figure.update_layout(showlegend=False, margin={"l": 20, "r": 20, "t": 50, "b": 60})
    return figure


def _row_names(panel: ForestPanel, *, with_name: bool) -> list[str]:
    if not with_name:
        return [row.text for row in panel.rows]
    return [f"<b>{plain(elided(row.variant, LONGEST_NAME_OF_ROW))}</b><br>{row.text}" for row in panel.rows]


def _bar(row: ForestRow, place: int) -> "Scatter":
    """A point with its interval in row `place`; an unbounded end has no bar."""
    from plotly.graph_objects import Scatter

    at, colour = row.drawn_at, row.style.colour
    assert at is not None
    return Scatter(
        x=[at],
        y=[place],
        mode="markers",
        marker={"color": colour, "symbol": ARROWS.get(row.arrow, row.style.symbol), "size": 11},
        error_x={
            "type": "data",
            "array": [0 if row.hi is None else row.hi - at],
            "arrayminus": [0 if row.lo is None else at - row.lo],
            "color": colour,
            "thickness": 2,
            "width": 5,
        },
        hovertemplate=f"{in_hover(row.variant)}: {row.text}<extra></extra>",
    )
