"""The ceiling of every variant and the compute it needs, each with its interval and against the reference."""

from typing import TYPE_CHECKING

from ablations.report.colours import Style, styles
from ablations.report.style import dress, mark
from ablations.verdict.compare import VariantResult
from ablations.verdict.results import Results
from ablations.verdict.words import ratio_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter


def ceilings_figure(results: Results) -> "Figure":
    """Left the ceiling of every variant with its interval, right the compute it needs, both against the reference."""
    from plotly.subplots import make_subplots

    lines = results.comparison.variants if results.comparison else ()
    look, reference = styles(results.plan), results.plan.reference
    titles = ["ceiling A", f"compute to a common target, over that of {reference}"]
    figure = make_subplots(cols=2, column_widths=[0.58, 0.42], horizontal_spacing=0.07, subplot_titles=titles)
    for place, line in enumerate(lines):
        if line.verdict != "no rise":
            figure.add_trace(_ceiling_bar(line, place, look[line.curve]), row=1, col=1)
        if line.compute_ratio is not None and line.curve != reference:
            figure.add_trace(_ratio_bar(line, place, look[line.curve]), row=1, col=2)
        if line.curve == reference and line.asymptote.is_bounded:
            mark(figure, line.A)
    mark(figure, 1.0, axis="x2")
    dress(figure, height=130 + 46 * max(len(lines), 1))
    rows = {"tickvals": list(range(len(lines))), "range": [len(lines) - 0.5, -0.5], "automargin": True}
    ceilings = [f"<b>{line.curve}</b><br>{line.asymptote.cell()}" for line in lines]
    figure.update_yaxes(ticktext=ceilings, **rows, row=1, col=1)
    figure.update_yaxes(ticktext=[ratio_text(line) for line in lines], side="right", **rows, row=1, col=2)
    figure.update_xaxes(title="held-out pass rate, 95 % intervals", row=1, col=1)
    figure.update_xaxes(title="under 1 needs less compute", type="log", row=1, col=2)
    figure.update_layout(showlegend=False, margin={"l": 20, "r": 20, "t": 50, "b": 60})
    return figure


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
