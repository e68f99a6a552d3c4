"""A ladder of scales: each variant's difference from the reference at every scale, and its trend."""

from ablations.answers.answer import Question
from ablations.answers.interval import Interval
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.figures.chart import Axis, Chart, DottedLine, Panel, Series
from ablations.report.figures.colours import COLOURS, MARKER_SYMBOLS, OTHERS_COLOUR
from ablations.text import interval_text

LADDER_LEGEND = (
    "Points: the difference at each scale with its 95 % interval. Open point: the forecast, if the trend continues. "
    "Dotted: no difference."
)
"""Caption of `ladder_chart`."""
LOOKS = tuple(zip(COLOURS, MARKER_SYMBOLS[1:], strict=True))
"""Colours and markers of the variants, in their order."""
APART = 0.02
"""Distance of two variants at one scale, as a share of the axis, so that their intervals do not cover each other."""


def ladder_chart(found: ScaleLadder, question: Question) -> Chart:
    """Differences against scale; variants beyond the number of colours are grey."""
    ladders = [(name, by[question.name]) for name, by in found.ladders.items() if question.name in by]
    length, marks = found.at - found.scales[0].x, []
    for place, (name, ladder) in enumerate(ladders):
        colour, symbol = LOOKS[place] if place < len(LOOKS) else (OTHERS_COLOUR, MARKER_SYMBOLS[0])
        points = [(rung.x, rung.scale, ladder.interval(rung.difference)) for rung in ladder.rungs]
        points.append((found.at, "forecast", ladder.forecast(found.at)))
        shift = APART * length * (place - (len(ladders) - 1) / 2)
        marks.append(
            Series(
                x=[x + shift for x, _, _ in points], y=[one.estimate for _, _, one in points],
                y_ends=([_end(one.lo, one) for _, _, one in points], [_end(one.hi, one) for _, _, one in points]),
                colour=colour, width=1.5, symbol=symbol, is_filled=[*[True] * len(ladder.rungs), False], size=9.0,
                name=name, legend=f"{name}: {ladder.word}", hover="{name}, {text}",
                texts=[
                    f"{scale}: {interval_text(one.estimate, one.lo, one.hi, question.form)}" for _, scale, one in points
                ],
            )
        )  # fmt: skip
    ticks = (*((scale.x, scale.name) for scale in found.scales), (found.at, f"forecast\n{found.at_text}"))
    panel = Panel(
        x=Axis(ticks=ticks),
        y=Axis(title=question.heading.format(reference=found.reference), is_log=question.is_ratio), marks=marks,
        rules=[DottedLine(y=question.no_difference)], height=320,
    )  # fmt: skip
    alt = "Difference of each variant from the reference against scale; the table has the numbers"
    return Chart(alt=alt, panels=[panel], legend="below")


def _end(end: float | None, interval: Interval) -> float:
    return interval.estimate if end is None else end
