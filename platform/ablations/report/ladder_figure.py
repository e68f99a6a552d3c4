"""The picture of a ladder of scales: the difference of each variant against the scale, with its line and forecast."""

from plotly.graph_objects import Figure, Scatter

from ablations.answers.answer import Question
from ablations.answers.interval import Interval
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.colours import COLOURS, MARKER_SYMBOLS, OTHERS_COLOUR, Style
from ablations.report.style import GREY, dress, in_hover, plain
from ablations.text import interval_text

LADDER_LEGEND = (
    "Points: the difference at each scale with its 95 % interval. Open point: the forecast, if the trend continues. "
    "Dotted: no difference."
)
APART = 0.02
"""Distance of two variants at one scale, as a share of the axis, so that their intervals do not cover each other."""


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
        estimates = [interval.estimate for _, _, interval in points]
        figure.add_trace(
            Scatter(
                x=[x + shift for x, _, _ in points],
                y=estimates,
                mode="lines+markers",
                line={"color": style.colour, "width": 1.5},
                marker={
                    "color": [*[style.colour] * (len(points) - 1), "white"],
                    "line": {"color": style.colour, "width": 1.5},
                    "symbol": style.symbol,
                    "size": 9,
                },
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [_end(one.hi, one) - one.estimate for _, _, one in points],
                    "arrayminus": [one.estimate - _end(one.lo, one) for _, _, one in points],
                    "color": style.colour,
                    "thickness": 1.2,
                    "width": 3,
                },
                name=f"{plain(name)}: {ladder.word}",
                text=[_said(question, scale, one) for _, scale, one in points],
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


def _said(question: Question, scale: str, interval: Interval) -> str:
    return f"{in_hover(scale)}: {interval_text(interval.estimate, interval.lo, interval.hi, question.form)}"
