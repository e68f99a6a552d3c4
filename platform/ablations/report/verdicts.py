"""Every variant's level, ceiling and compute, each with its interval and beside the reference."""

from typing import TYPE_CHECKING

from ablations.report.colours import Style, styles
from ablations.report.style import dress, mark
from ablations.verdict.compare import VariantResult
from ablations.verdict.results import Results
from ablations.verdict.words import level_text, ratio_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter


def verdicts_figure(results: Results) -> "Figure":
    """A panel for each question: the level less the reference's, the ceiling, and the compute over the reference's."""
    from plotly.subplots import make_subplots

    lines = results.comparison.variants if results.comparison else ()
    look, reference = styles(results.plan), results.plan.reference
    titles = [f"level less that of {reference}", "ceiling A", f"compute over that of {reference}"]
    figure = make_subplots(cols=3, horizontal_spacing=0.13, subplot_titles=titles)
    for place, line in enumerate(lines):
        if line.delta_level is not None and line.curve != reference:
            figure.add_trace(_level_bar(line, place, look[line.curve]), row=1, col=1)
        if line.verdict != "no rise":
            figure.add_trace(_ceiling_bar(line, place, look[line.curve]), row=1, col=2)
        if line.compute_ratio is not None and line.curve != reference:
            figure.add_trace(_ratio_bar(line, place, look[line.curve]), row=1, col=3)
        if line.curve == reference and line.asymptote.is_bounded:
            mark(figure, line.A, axis="x2")
    mark(figure, 0.0)
    mark(figure, 1.0, axis="x3")
    dress(figure, height=130 + 46 * max(len(lines), 1))
    rows = {"tickvals": list(range(len(lines))), "range": [len(lines) - 0.5, -0.5], "automargin": True}
    names = [f"<b>{line.curve}</b><br>{level_text(line)}" for line in lines]
    figure.update_yaxes(ticktext=names, **rows, row=1, col=1)
    figure.update_yaxes(ticktext=[line.asymptote.cell() for line in lines], **rows, row=1, col=2)
    figure.update_yaxes(ticktext=[ratio_text(line) for line in lines], side="right", **rows, row=1, col=3)
    figure.update_xaxes(title="pass rate over the last third", row=1, col=1)
    figure.update_xaxes(title="held-out pass rate", row=1, col=2)
    figure.update_xaxes(title="under 1 needs less compute", type="log", row=1, col=3)
    figure.update_layout(showlegend=False, margin={"l": 20, "r": 20, "t": 50, "b": 60})
    return figure


def _level_bar(line: VariantResult, place: int, style: Style) -> "Scatter":
    assert line.delta_level is not None
    low, high = line.delta_level_lo, line.delta_level_hi
    return _bar(line.delta_level, low, high, place, style, f"{line.curve}: {level_text(line)}")


def _ceiling_bar(line: VariantResult, place: int, style: Style) -> "Scatter":
    """A with its interval; an arrow at the lower bound where there is no upper one."""
    if line.A_hi is None:
        style = Style(colour=style.colour, symbol="arrow-right")
        return _bar(line.A_lo, line.A_lo, line.A_lo, place, style, f"{line.curve}: {line.asymptote}")
    return _bar(line.A, line.A_lo, line.A_hi, place, style, f"{line.curve}: {line.asymptote}")


def _ratio_bar(line: VariantResult, place: int, style: Style) -> "Scatter":
    assert line.compute_ratio is not None
    low, high = line.compute_ratio_lo, line.compute_ratio_hi
    return _bar(line.compute_ratio, low, high, place, style, f"{line.curve}: {ratio_text(line)}")


def _bar(estimate: float, low: float | None, high: float | None, place: int, style: Style, text: str) -> "Scatter":
    """A point with its interval in row `place`; an end that is not bounded has no bar."""
    from plotly.graph_objects import Scatter

    return Scatter(
        x=[estimate],
        y=[place],
        mode="markers",
        marker={"color": style.colour, "symbol": style.symbol, "size": 11},
        error_x={
            "type": "data",
            "array": [0 if high is None else high - estimate],
            "arrayminus": [0 if low is None else estimate - low],
            "color": style.colour,
            "thickness": 2,
            "width": 5,
        },
        hovertemplate=f"{text}<extra></extra>",
    )
