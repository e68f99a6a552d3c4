"""A ladder of scales: per question a table with a row per variant, its difference at each scale and the trend, and the
picture of it."""

from plotly.graph_objects import Figure, Scatter

from ablations.answers.answer import Question
from ablations.answers.interval import Interval
from ablations.answers.ladder import Ladder
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.colours import COLOURS, MARKER_SYMBOLS, OTHERS_COLOUR, Style
from ablations.report.grid_tables import GridTable
from ablations.report.style import GREY, dress, in_hover, plain
from ablations.terminal.listing import Column, Listing
from ablations.text import interval_text

WORD_STYLES = {"carries": "green", "fades": "yellow", "flips": "red"}
LADDER_NOTE = (
    "carries: the difference shows at the largest scale and in the mean of all. fades: the difference shows at the "
    "smallest scale, and the trend leads back to none. flips: the differences at two scales have opposite signs."
)
LADDER_LEGEND = (
    "Points: the difference at each scale with its 95 % interval. Open point: the forecast, if the trend continues. "
    "Dotted: no difference."
)
APART = 0.02
"""Distance of two variants at one scale, as a share of the axis, so that their intervals do not cover each other."""


def ladder_tables(found: ScaleLadder) -> list[Listing]:
    """A table for each question that some variant answers at two scales, for the terminal."""
    tables, words = [], ("variant", "over scales")
    for grid in ladder_grids(found):
        columns = [Column(heading=one, kind="name" if one in words else "number") for one in grid.headings]
        tables.append(Listing(columns=columns, title=grid.title))
        for *cells, word, forecast in grid.rows:
            tables[-1].add(*cells, (word, WORD_STYLES.get(word, "")), forecast)
    return tables


def ladder_grids(found: ScaleLadder) -> list[GridTable]:
    """The same tables as text."""
    return [ladder_grid(found, question) for question in found.questions]


def ladder_sentences(found: ScaleLadder) -> list[str]:
    """Sentences on the scale of the forecasts, the check of the last one, and the variants left out."""
    checked = [
        (ahead, ladder.interval(ladder.rungs[-1].difference))
        for by in found.ladders.values()
        for ladder in by.values()
        if (ahead := ladder.left_out) is not None
    ]
    said = [LADDER_NOTE, f"Trend: per {found.per_text}. Forecast: for {found.at_text}, if the trend continues."]
    if checked:
        inside = sum(
            _end(ahead.lo, ahead) <= _end(there.hi, there) and _end(there.lo, there) <= _end(ahead.hi, ahead)
            for ahead, there in checked
        )
        largest = found.scales[-1].name
        said.append(
            f"Check: without {largest}, the forecast for it contained the measured difference in {inside} of "
            f"{len(checked)} cases."
        )
    return [*said, *found.notes]


def ladder_grid(found: ScaleLadder, question: Question) -> GridTable:
    """The table of a question."""
    ladders = [(name, by[question.name]) for name, by in found.ladders.items() if question.name in by]
    return GridTable(
        title=f"{question.heading.format(reference=found.reference)}, by scale",
        headings=("variant", *(scale.name for scale in found.scales), "trend", "over scales", "forecast"),
        rows=tuple((name, *_cells(found, ladder)) for name, ladder in ladders),
    )


def _cells(found: ScaleLadder, ladder: Ladder) -> tuple[str, ...]:
    question = ladder.question
    rungs = {rung.scale: _text(question, ladder.interval(rung.difference)) for rung in ladder.rungs}
    return (
        *(rungs.get(scale.name, "") for scale in found.scales),
        _text(question, ladder.interval(ladder.trend)),
        ladder.word,
        _text(question, ladder.forecast(found.at)),
    )


def _text(question: Question, interval: Interval) -> str:
    return interval_text(interval.estimate, interval.lo, interval.hi, question.form)


def ladder_figure(found: ScaleLadder, question: Question) -> Figure:
    """Differences against scale; variants beyond the number of colours are grey."""
    figure = Figure()
    ladders = [(name, by[question.name]) for name, by in found.ladders.items() if question.name in by]
    length = found.at - found.scales[0].x
    for place, (name, ladder) in enumerate(ladders):
        style = _style(place)
        shift = APART * length * (place - (len(ladders) - 1) / 2)
        points = [(rung.x, rung.scale, ladder.interval(rung.difference)) for rung in ladder.rungs]
        points.append((found.at, "forecast", ladder.forecast(found.at)))
        intervals = [one for _, _, one in points]
        line = {"color": style.colour, "width": 1.5}
        fill = [*[style.colour] * (len(points) - 1), "white"]
        bars = {"type": "data", "symmetric": False, "color": style.colour, "thickness": 1.2, "width": 3}
        bars["array"] = [_end(one.hi, one) - one.estimate for one in intervals]
        bars["arrayminus"] = [one.estimate - _end(one.lo, one) for one in intervals]
        figure.add_trace(
            Scatter(
                x=[x + shift for x, _, _ in points],
                y=[one.estimate for one in intervals],
                mode="lines+markers",
                line=line,
                marker={"color": fill, "line": line, "symbol": style.symbol, "size": 9},
                error_y=bars,
                name=f"{plain(name)}: {ladder.word}",
                text=[f"{in_hover(scale)}: {_text(question, one)}" for _, scale, one in points],
                hovertemplate=f"{in_hover(name)}, %{{text}}<extra></extra>",
            )
        )
    figure.add_hline(y=question.no_difference, line={"color": GREY, "width": 1, "dash": "dot"}, layer="below")
    dress(figure, height=420)
    ticks = [*((scale.x, plain(scale.name)) for scale in found.scales), (found.at, f"forecast<br>{found.at_text}")]
    figure.update_xaxes(tickvals=[x for x, _ in ticks], ticktext=[text for _, text in ticks], tickangle=0)
    figure.update_yaxes(
        title=question.heading.format(reference=plain(found.reference)), type="log" if question.is_ratio else "linear"
    )
    figure.update_layout(
        margin={"l": 75, "r": 60, "t": 20, "b": 60},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        showlegend=True,
    )
    return figure


def _style(place: int) -> Style:
    if place < len(COLOURS):
        return Style(colour=COLOURS[place], symbol=MARKER_SYMBOLS[1 + place])
    return Style(colour=OTHERS_COLOUR, symbol=MARKER_SYMBOLS[0])


def _end(end: float | None, interval: Interval) -> float:
    return interval.estimate if end is None else end
