"""Two views that separate variants that move the ceiling from variants that change the speed of getting there: the
plane of ceiling and efficiency, and readings on axes on which eq. 1 is a straight line of slope B (ScaleRL figure 7).
"""

from collections.abc import Collection

import numpy as np
from plotly.graph_objects import Figure, Scatter

from ablations.answers.compare import VariantResult
from ablations.answers.paper_grid import PaperFit
from ablations.answers.questions import CEILING, COMPUTE
from ablations.findings.paper_comparison import PaperComparison, PaperVariant
from ablations.findings.results import Results
from ablations.home.labels import Labels
from ablations.report.colours import OTHERS_COLOUR, Style, styles
from ablations.report.series import most_points_of_run, thinned
from ablations.report.style import dress, in_hover, mark, plain
from ablations.report.words.comparison import ResultRow
from ablations.text import compute_title

PLANE_LEGEND = (
    "Up: a higher ceiling than the baseline's. Left: less compute to the common target. A variant far up or down "
    "moves the ceiling; a variant far left or right changes the efficiency. Bars are 95 % intervals; a bar without "
    "an end stops at the frame, and a variant without either number is not drawn."
)
"""Caption of `plane_figure`."""
FAR_DOWN, FAR_UP = 0.02, 50.0
"""Ratios of compute at which a bar without an end stops; the axis ends before them."""
LINEARISED_LEGEND = (
    "log F(R) against log C with F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1), so that eq. 1 is the line F = C^B of "
    "slope B (ScaleRL figure 7, arXiv 2510.13786). Filled points were fitted, hollow ones were not; dashes are "
    "extrapolated. Variants with the reference's A within 0.02 are drawn at the common A."
)
"""Caption of `linearised_figure`."""


def plane_figure(results: Results, *, focus: Collection[str]) -> Figure:
    """Difference in A against the ratio of compute, both relative to the baseline and with intervals; `focus` is in
    colour."""
    look, reference = styles(results.plan, focus), results.plan.reference
    lines = results.comparison.variants if results.comparison else ()
    others = [line for line in lines if line.name != reference and is_placed(line)]
    figure = Figure()
    ends = _ends(others)
    for line in others:
        is_grey = line.name not in focus
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


def linearised_score(fit: PaperFit, score: np.ndarray) -> np.ndarray:
    """F(R) of each pass rate; NaN if undefined, for R <= R_0 or R >= A.

    F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1). By eq. 1 (A - R_0) / (R - R_0) - 1 = (C_mid / C)^B, so F = C^B.
    """
    inside = (score > fit.R_0) & (score < fit.A)
    gained = np.where(inside, score - fit.R_0, np.nan)
    return fit.C_mid**fit.B * gained / (fit.A - fit.R_0 - gained)


def linearised_figure(comparison: PaperComparison, plan: Labels, focus: Collection[str]) -> Figure:
    """The readings of every variant on axes on which its fit is a line of slope B; `focus` may have a colour."""
    look = styles(plan, focus)
    most = most_points_of_run(sum(len(_drawn(variant)) for variant in comparison.variants))
    figure = Figure()
    for variant in comparison.variants:
        for fit in _drawn(variant):
            traces = [*_lines(fit, look[variant.name]), _points(fit, look[variant.name], plan.hours_name, most)]
            for trace in traces:
                trace.update(legendgroup=variant.name, showlegend=False)
            figure.add_traces(traces)
        figure.add_trace(_legend_entry(variant, look[variant.name]))
    figure.update_xaxes(title=compute_title(plan.compute_name), type="log", dtick="D2")
    figure.update_yaxes(title="F(R)", type="log", dtick=1, exponentformat="power")
    dress(figure, height=520)
    figure.update_layout(
        margin={"l": 70, "r": 30, "t": 30, "b": 70},
        legend={"orientation": "h", "yanchor": "top", "y": -0.3, "x": 0, "itemsizing": "constant"},
    )
    return figure


def linearised_note(comparison: PaperComparison) -> str:
    """The number of readings without a place in `linearised_figure`, and why."""
    drawn = [(fit, fit.curve.score[1:]) for variant in comparison.variants for fit in _drawn(variant)]
    num_low = sum(int((score <= fit.R_0).sum()) for fit, score in drawn)
    num_high = sum(int(((score > fit.R_0) & (score >= fit.A)).sum()) for fit, score in drawn)
    return (
        f"{num_low + num_high} of {sum(score.size for _, score in drawn)} evaluations after step 0 have no F and are "
        f"left out: {num_low} with R <= R_0, {num_high} with R >= A."
    )


def _drawn(variant: PaperVariant) -> tuple[PaperFit, ...]:
    """The fits at the common A if there are any, since only those are compared by slope, else the plain fits."""
    return variant.refits or variant.fits


def _points(fit: PaperFit, style: Style, hours_name: str, most: int) -> Scatter:
    # The reading at compute 0 is R_0 itself.
    compute, score, _ = thinned(fit.curve.compute[1:], fit.curve.score[1:], most)
    F = linearised_score(fit, score)
    shown = np.isfinite(F)
    fitted = (fit.window[0] <= compute) & (compute <= fit.window[1])
    fill = [style.colour if inside else "white" for inside in fitted[shown]]
    return Scatter(
        x=compute[shown],
        y=F[shown],
        customdata=score[shown],
        mode="markers",
        marker={"symbol": style.symbol, "size": 6, "color": fill, "line": {"color": style.colour, "width": 1.2}},
        hovertemplate=f"{in_hover(fit.curve.name)}<br>%{{x:.4g}} {hours_name}: %{{customdata:.4f}}<extra></extra>",
    )


def _lines(fit: PaperFit, style: Style) -> list[Scatter]:
    """The line F = C^B, solid inside the window and dashed on both sides."""
    start, end = fit.window
    first, last = float(fit.curve.compute[1]), float(fit.curve.compute[-1])
    spans = [(first, start, "dash"), (start, end, "solid"), (end, last, "dash")]
    return [
        Scatter(
            x=[low, high],
            y=[low**fit.B, high**fit.B],
            mode="lines",
            line={"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash},
            hoverinfo="skip",
        )
        for low, high, dash in spans
        if low < high
    ]


def _legend_entry(variant: PaperVariant, style: Style) -> Scatter:
    """The legend entry of a variant, with its slope; it draws nothing."""
    drawn = _drawn(variant)
    A, B = (float(np.mean(values)) for values in ([fit.A for fit in drawn], [fit.B for fit in drawn]))
    return Scatter(
        x=[None],
        y=[None],
        mode="lines+markers",
        line={"color": style.colour},
        marker={"symbol": style.symbol, "size": 8, "color": style.colour},
        name=f"{plain(variant.name)}: B {B:.2f} at A {A:.3f}",
        legendgroup=variant.name,
    )
