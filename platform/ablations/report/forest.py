"""Forest plots: the differences from the reference in level, ceiling and compute, with intervals, as plain data and
as a figure with the numbers in columns of their own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from plotly.graph_objects import Figure, Scatter

from ablations.answers.answer import Answer, Question
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING
from ablations.findings.results import Results
from ablations.report.colours import OTHERS_COLOUR, Style, leading, styles
from ablations.report.series import ticks
from ablations.report.style import dress, elided, in_hover, mark, plain
from ablations.report.words.comparison import ResultRow

NOT_KNOWN = "not known"
"""Text for a difference that the readings do not bound on either side."""
DECIDED_COLOUR = "#57606a"
"""The colour of a decided difference of a variant that has no colour of its own."""

MARGIN, LEAST_MARGIN = 0.08, 0.05
"""Margin of an axis on either side, as a share of its length; and the margin of an axis without a length."""
LONGEST_NAME_OF_ROW = {False: 26, True: 15}
"""Limit on the characters of a variant's name beside its row; the key is True for stacked panels."""
CHARACTER_PX = {False: 6.8, True: 6.1}
ROW_PX, HEAD_PX, FOOT_PX = 26, 34, 52
"""Height of a row, and of the space above and below the rows of a panel."""
PLOT_PX = {False: 740, True: 262}
"""Minimum width between the names and the right edge."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One variant's difference with its 95 % interval; an end of None is unbounded.

    ForestRow(variant="loo-loss", colour="#216da4", answer=Answer(...), text="-0.058 [-0.087, -0.029]")
    """

    variant: str
    colour: str
    """Grey if the answer is undecided."""
    answer: Answer
    """Without numbers if the variant has no ceiling."""
    text: str

    @property
    def known(self) -> list[float]:
        """The estimate and the ends of the interval, as far as they are known."""
        return [one for one in (self.answer.estimate, self.answer.lo, self.answer.hi) if one is not None]


@dataclass(frozen=True, kw_only=True)
class ForestPanel:
    """The answers of every variant to one question."""

    question: Question
    title: str
    rows: tuple[ForestRow, ...]
    """Every compared variant but the reference, in the same order in every panel: the best on top."""

    @property
    def is_empty(self) -> bool:
        """True if no variant has a number."""
        return not any(row.known for row in self.rows)

    @property
    def range(self) -> tuple[float, float]:
        """The ends of its axis: all known numbers and no difference, with a margin."""
        known = [self.question.no_difference, *(value for row in self.rows for value in row.known)]
        low, high = min(known), max(known)
        if self.question.is_ratio:
            low, high = math.log(low), math.log(high)
        air = MARGIN * (high - low) or LEAST_MARGIN
        return (math.exp(low - air), math.exp(high + air)) if self.question.is_ratio else (low - air, high + air)

    def ticks(self, most: int) -> list[float]:
        """At most `most` round numbers on its axis."""
        return ticks(*self.range, most, log=self.question.is_ratio)


def forest_panels(results: Results, *, shown: Sequence[str] | None = None) -> tuple[ForestPanel, ...]:
    """A panel for each question that has a number of any variant; all variants by default."""
    return tuple(panel for panel in _panels(results, shown) if not panel.is_empty)


def left_out_note(results: Results, *, shown: Sequence[str] | None = None) -> str:
    """The reason why `forest_panels` lacks a panel; empty if none is missing."""
    empty = [panel.question.name for panel in _panels(results, shown) if panel.rows and panel.is_empty]
    if not empty:
        return ""
    named = " and ".join(f"the {question}" for question in empty)
    return f"Not drawn: {named}; no evaluation bounds a difference in {'it' if len(empty) == 1 else 'them'} yet."


def _panels(results: Results, shown: Sequence[str] | None) -> list[ForestPanel]:
    reference = results.plan.reference
    lines = [
        line
        for line in (results.comparison.variants if results.comparison else ())
        if line.name != reference and (shown is None or line.name in shown)
    ]
    look = styles(results.plan, leading(results) if shown is None else shown)
    ordered = sorted(lines, key=_rank, reverse=True)
    return [_panel(results, question, ordered, look) for question in results.questions]


def _rank(line: VariantResult) -> tuple[bool, float]:
    """Rank of variants by the estimate of the first question; variants without an estimate come last."""
    first = next(iter(line.answers.values())).estimate
    return first is not None, first or 0.0


def _panel(results: Results, question: Question, lines: Sequence[VariantResult], look: dict[str, Style]) -> ForestPanel:
    rows = []
    for line in lines:
        row, answer = ResultRow(results=results, variant=results.variant(line.name)), line.answers[question.name]
        said, own = row.number(question) or NOT_KNOWN, look[line.name].colour
        if question is CEILING and not line.asymptote.rises:  # a variant that does not rise has no ceiling
            answer, said = replace(answer, estimate=None, lo=None, hi=None), line.verdict
        colour = OTHERS_COLOUR if not answer.differs else DECIDED_COLOUR if own == OTHERS_COLOUR else own
        rows.append(ForestRow(variant=line.name, colour=colour, answer=answer, text=said))
    title = question.heading.format(reference=results.plan.reference)
    return ForestPanel(question=question, title=title, rows=tuple(rows))


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
            if row.known:
                traces += _bar(row, line, (low, high), f"x{number}", f"y{number}")
        shown_names, most_ticks = names if stacked or not place else [], 3 if stacked else 2
        _axes(figure, panel, shown_names, str(number), (start, end), (bottom, top), most_ticks)
        mark(figure, panel.question.no_difference, axis=f"x{number}", height_of=f"y{number} domain")
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
    ticks = {"tickvals": panel.ticks(most_ticks), "type": "log" if panel.question.is_ratio else "linear"}
    span = [math.log10(low), math.log10(high)] if panel.question.is_ratio else [low, high]
    look = {"showline": True, "gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "tickangle": 0}
    title = {"text": panel.question.axis, "standoff": 4, "font": {"size": 11}}
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
            "font": {"color": "#1f2328" if row.answer.differs else "#8a8a8a"},
        }
        for line, row in enumerate(panel.rows)
    ]
    return [bare | one for one in ({"yanchor": "bottom", **title}, *numbers)]


def _bar(row: ForestRow, place: int, ends: tuple[float, float], x: str, y: str) -> list[Scatter]:
    """An interval in row `place` and the point in it; an unknown end goes to the edge, with an arrow."""
    answer, colour = row.answer, row.colour
    low, high = ends[0] if answer.lo is None else answer.lo, ends[1] if answer.hi is None else answer.hi
    points = [] if answer.estimate is None else [(answer.estimate, "circle" if answer.differs else "circle-open")]
    points += [(ends[0], "triangle-left")] if answer.lo is None else []
    points += [(ends[1], "triangle-right")] if answer.hi is None else []
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
