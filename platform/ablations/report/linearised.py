"""Readings on axes on which eq. 1 is a straight line of slope B (ScaleRL figure 7)."""

from collections.abc import Collection

import numpy as np
from plotly.graph_objects import Figure, Scatter

from ablations.answers.paper_grid import PaperFit
from ablations.findings.paper_comparison import PaperComparison, PaperVariant
from ablations.home.labels import Labels
from ablations.report.colours import Style, styles
from ablations.report.style import dress, in_hover, plain
from ablations.report.thinning import most_points_of_run, thinned
from ablations.text import compute_title

LINEARISED_LEGEND = (
    "log F(R) against log C with F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1), so that eq. 1 is the line F = C^B of "
    "slope B (ScaleRL figure 7, arXiv 2510.13786). Filled points were fitted, hollow ones were not; dashes are "
    "extrapolated. Variants with the reference's A within 0.02 are drawn at the common A."
)
"""Caption of `linearised_figure`."""


def linearised_score(fit: PaperFit, score: np.ndarray) -> np.ndarray:
    """F(R) of each pass rate; NaN if undefined, for R <= R_0 or R >= A.

    F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1). By eq. 1 (A - R_0) / (R - R_0) - 1 = (C_mid / C)^B, so F = C^B.
    """
    inside = (score > fit.R_0) & (score < fit.A)
    gained = np.where(inside, score - fit.R_0, np.nan)
    return fit.C_mid**fit.B * gained / (fit.A - fit.R_0 - gained)


def linearised_figure(comparison: PaperComparison, plan: Labels, focus: Collection[str] | None = None) -> Figure:
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
    """Number of readings without a place in `linearised_figure`: "6 of 117 readings ... have no F: 1 with R <= R_0,
    ...".
    """
    num_readings, num_low, num_high = 0, 0, 0
    for variant in comparison.variants:
        for fit in _drawn(variant):
            score = fit.curve.score[1:]
            low = score <= fit.R_0
            num_readings += score.size
            num_low += int(low.sum())
            num_high += int((~low & (score >= fit.A)).sum())
    return (
        f"{num_low + num_high} of {num_readings} evaluations after step 0 have no F and are left out: "
        f"{num_low} with R <= R_0, {num_high} with R >= A."
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
