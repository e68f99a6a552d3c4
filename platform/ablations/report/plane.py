"""The plane of ceiling and efficiency, which separates variants that move the ceiling from variants that change the
speed of getting there.
"""

from collections.abc import Collection

from plotly.graph_objects import Figure, Scatter

from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING, COMPUTE
from ablations.findings.results import Results
from ablations.report.colours import OTHERS_COLOUR, Style, styles
from ablations.report.leading import leading
from ablations.report.style import dress, in_hover, mark, plain
from ablations.report.words.comparison import ResultRow

PLANE_LEGEND = (
    "Up: a higher ceiling than the baseline's. Left: less compute to the common target. A variant far up or down "
    "moves the ceiling; a variant far left or right changes the efficiency. Bars are 95 % intervals; a bar without "
    "an end stops at the frame, and a variant without either number is not drawn."
)
"""Caption of `plane_figure`."""
FAR_DOWN, FAR_UP = 0.02, 50.0
"""Ratios of compute at which a bar without an end stops; the axis ends before them."""


def plane_figure(results: Results, *, focus: Collection[str] | None = None) -> Figure:
    """Difference in A against the ratio of compute, both relative to the baseline and with intervals; `focus` is in
    colour."""
    look, reference = styles(results.plan, leading(results) if focus is None else focus), results.plan.reference
    lines = results.comparison.variants if results.comparison else ()
    others = [line for line in lines if line.name != reference and is_placed(line)]
    figure = Figure()
    ends = _ends(others)
    for line in others:
        is_grey = focus is not None and line.name not in focus
        style = Style(colour=OTHERS_COLOUR, symbol="circle") if is_grey else look[line.name]
        row = ResultRow(results=results, variant=results.variant(line.name))
        figure.add_trace(_cross(line, row, style, ends, is_grey=is_grey))
    base = look[reference]
    figure.add_trace(
        Scatter(
            x=[1.0],
            y=[0.0],
            mode="markers",
            marker={"color": base.colour, "symbol": base.symbol, "size": 11},
            name=f"{plain(reference)} (baseline)",
            hovertemplate="baseline<extra></extra>",
        )
    )
    mark(figure, 1.0, log=True)
    figure.add_hline(y=0.0, line={"color": "#8a8a8a", "width": 1, "dash": "dot"}, layer="below")
    dress(figure, height=480)
    figure.update_xaxes(title="compute ÷ baseline (under 1 needs less)", type="log")
    figure.update_yaxes(title="ceiling A − baseline")
    figure.update_layout(
        margin={"l": 60, "r": 15, "t": 20, "b": 60},
        legend={"orientation": "h", "yanchor": "top", "y": -0.18, "x": 0, "itemsizing": "constant"},
    )
    return figure


def is_placed(line: VariantResult) -> bool:
    """True if a variant has both a difference of ceilings and a ratio of compute."""
    answers = line.answers
    is_known = answers["compute"].estimate is not None and answers["ceiling"].estimate is not None
    return is_known and line.asymptote.is_bounded


def _ends(lines: list[VariantResult]) -> tuple[float, float]:
    """The lowest and the highest end of the differences of ceilings, for bars without an end."""
    answers = [line.answers["ceiling"] for line in lines]
    known = [end for one in answers for end in (one.lo, one.hi, one.estimate) if end is not None]
    low, high = min(known, default=-0.05), max(known, default=0.05)
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _cross(line: VariantResult, row: ResultRow, style: Style, ends: tuple[float, float], *, is_grey: bool) -> Scatter:
    compute, ceiling = line.answers["compute"], line.answers["ceiling"]
    ratio, delta = compute.estimate, ceiling.estimate
    assert ratio is not None
    assert delta is not None
    low, high = compute.lo or FAR_DOWN, compute.hi or FAR_UP
    bottom = ends[0] if ceiling.lo is None else ceiling.lo
    top = ends[1] if ceiling.hi is None else ceiling.hi
    bars = {"type": "data", "symmetric": False, "color": style.colour, "thickness": 1.5, "width": 4}
    name = plain(line.name)
    said = f"ceiling {row.number(CEILING)}<br>compute {row.number(COMPUTE)}"
    return Scatter(
        x=[ratio],
        y=[delta],
        mode="markers",
        marker={"color": style.colour, "symbol": style.symbol, "size": 7 if is_grey else 11},
        error_x=bars | {"array": [high - ratio], "arrayminus": [ratio - low]},
        error_y=bars | {"array": [top - delta], "arrayminus": [delta - bottom]},
        name=name,
        showlegend=not is_grey,
        hovertemplate=f"{in_hover(line.name)}<br>{said}<extra></extra>",
    )
