"""Plotly figures of a sweep, made once from plain data: the report, the page and MLflow show the same ones.

One colour and marker a variant. Points are measured (hollow ones were not fitted), lines are fitted, dashes are
extrapolated, a band is the 95 % interval of the fitted curve.

Plotly is imported inside functions: the command line must start quickly.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ablations.compare import VariantResult
from ablations.fit import Fit
from ablations.plan import Plan
from ablations.results import FittedRun, FittedVariant, Results
from ablations.summary import ratio_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

REFERENCE_COLOUR = "#1a1a1a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
"""Told apart with any kind of colour vision (Okabe and Ito 2008, Tol 2021) and dark enough on white."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon")
GREY = "#8a8a8a"
FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif", "size": 13, "color": "#1f2328"}
EXTRAPOLATED_TO = 2.0
"""End of the dashes, in budgets."""
NUM_LINE_POINTS = 160
CURVES_LEGEND = (
    "Filled points were fitted, hollow ones were not; lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), dashes are "
    "extrapolated to twice the budget, bands are 95 % intervals of the fitted curve."
)
"""What `curves_figure` shows, for the caption below it."""
LABEL_GAP = 0.042
"""Least distance of two labels, as a share of the axis."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one variant is drawn everywhere: `Style(colour="#0072B2", symbol="square")`."""

    colour: str
    symbol: str

    def tint(self, opacity: float) -> str:
        """The colour, see-through."""
        red, green, blue = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red},{green},{blue},{opacity})"


@dataclass(frozen=True, kw_only=True)
class ComputeAxis:
    """The horizontal axis: modelled GPU-hours from `first` to `last`, linear or logarithmic."""

    first: float
    """Least compute above 0 that was measured."""
    last: float
    log: bool

    def grid(self, start: float, end: float) -> np.ndarray:
        """Compute from `start` to `end`, evenly spaced on the axis."""
        if self.log:
            return np.geomspace(max(start, self.first), end, NUM_LINE_POINTS)
        return np.linspace(start, end, NUM_LINE_POINTS)

    def at(self, share: float) -> float:
        """The compute at a share of the axis' length."""
        if self.log:
            return float(self.first * (self.last / self.first) ** share)
        return share * self.last

    def drawn(self, compute: np.ndarray) -> np.ndarray:
        """Which readings have a place on the axis: compute 0 has none on a logarithmic one."""
        return compute > 0 if self.log else np.full(compute.shape, True)

    @property
    def layout(self) -> dict[str, Any]:
        """Plotly's settings."""
        title, ends = "compute (modelled GPU-hours)", [self.at(-0.02), self.last]
        if self.log:
            return {"title": title, "type": "log", "range": np.log10(ends).tolist(), "dtick": "D2"}
        return {"title": title, "type": "linear", "range": ends}


def styles(plan: Plan) -> dict[str, Style]:
    """Colour and marker of each variant, by its place in the plan; the reference is dark."""
    others = [variant.name for variant in plan.variants if variant.name != plan.reference]
    chosen = {plan.reference: Style(colour=REFERENCE_COLOUR, symbol=SYMBOLS[0])}
    for place, name in enumerate(others):
        chosen[name] = Style(colour=COLOURS[place % len(COLOURS)], symbol=SYMBOLS[1 + place % (len(SYMBOLS) - 1)])
    return chosen


def curves_figure(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    banded: Collection[str] | None = None,
    log_compute: bool = False,
) -> "Figure":
    """Pass rate against compute with fits, forecasts to twice the budget and asymptotes.

    `shown` are the variants drawn (all by default), `banded` those with their uncertainty (the reference by default).
    A click on a name in the legend hides everything of that variant.
    """
    from plotly.graph_objects import Figure

    plan = results.plan
    banded = [plan.reference] if banded is None else banded
    drawn = [variant for variant in results.variants if shown is None or variant.name in shown]
    axis, look = _compute_axis(results, log=log_compute), styles(plan)
    score_range = _score_range(drawn, axis)
    figure = Figure()
    for variant in drawn:
        figure.add_traces(_variant_traces(variant, look[variant.name], axis, banded=variant.name in banded))
    figure.add_traces(_asymptote_traces(drawn, look, axis, score_range))
    if plan.fit_to_gpu_hours < plan.budget_gpu_hours:
        _mark(figure, plan.fit_to_gpu_hours, text="fitted up to here", log=log_compute)
    _mark(figure, plan.budget_gpu_hours, text="budget", log=log_compute)
    figure.update_xaxes(**axis.layout)
    figure.update_yaxes(title="held-out pass rate", range=score_range)
    dress(figure, height=620)
    figure.update_layout(
        margin={"l": 70, "r": 205, "t": 30, "b": 70},
        legend={"orientation": "h", "yanchor": "top", "y": -0.15, "x": 0, "itemsizing": "constant"},
    )
    return figure


def variant_figure(results: Results, name: str) -> "Figure":
    """One variant beside the reference, both with their uncertainty."""
    pair = {results.plan.reference, name}
    return curves_figure(results, shown=pair, banded=pair)


def loo_figure(results: Results) -> "Figure":
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
        if line.curve == reference and results.variant(reference).has_ceiling:
            _mark(figure, line.A)
    _mark(figure, 1.0, axis="x2")
    dress(figure, height=130 + 46 * max(len(lines), 1))
    rows = {"tickvals": list(range(len(lines))), "range": [len(lines) - 0.5, -0.5], "automargin": True}
    ceilings = [f"<b>{line.curve}</b><br>{line.asymptote_text()}" for line in lines]
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
        return _bar(line.A_lo, line.A_lo, line.A_lo, place, style, f"{line.curve}: {line.asymptote_text()}")
    return _bar(line.A, line.A_lo, line.A_hi, place, style, f"{line.curve}: A {line.asymptote_text()}")


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


def _compute_axis(results: Results, *, log: bool) -> ComputeAxis:
    last = EXTRAPOLATED_TO * results.plan.budget_gpu_hours
    measured = [run.curve.compute[run.curve.compute > 0] for run in results.runs if run.curve is not None]
    first = min((float(compute[0]) for compute in measured if compute.size), default=last / 100)
    return ComputeAxis(first=first, last=last, log=log)


def _score_range(variants: Sequence[FittedVariant], axis: ComputeAxis) -> tuple[float, float]:
    """From the lowest reading to the highest reading or fitted curve, with some air."""
    values = [value for variant in variants for run in variant.runs for value in _extremes(run, axis)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    air = 0.06 * max(high - low, 0.02)
    return low - air, high + air


def _extremes(run: FittedRun, axis: ComputeAxis) -> list[float]:
    measured = [] if run.curve is None else [float(run.curve.score.min()), float(run.curve.score.max())]
    fitted = [] if run.fit is None else [float(run.fit.predict(axis.last)[0])]
    return measured + fitted


def _variant_traces(variant: FittedVariant, style: Style, axis: ComputeAxis, *, banded: bool) -> list["Scatter"]:
    traces = []
    for run in variant.runs:
        if run.fit is not None:
            traces += [_band(run.fit, style, axis)] if banded else []
            traces += _fitted_lines(run.fit, style, axis)
    traces += [_points(run, style, axis) for run in variant.runs if run.curve is not None]
    for trace in traces:
        trace.update(legendgroup=variant.name, showlegend=False)
    return [*traces, _legend_entry(variant.name, style)] if traces else []


def _legend_entry(name: str, style: Style) -> "Scatter":
    """What stands for a variant in the legend; it draws nothing."""
    from plotly.graph_objects import Scatter

    marker = {"symbol": style.symbol, "size": 8, "color": style.colour}
    return Scatter(
        x=[None],
        y=[None],
        mode="lines+markers",
        line={"color": style.colour},
        marker=marker,
        name=name,
        legendgroup=name,
    )


def _points(run: FittedRun, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    assert run.curve is not None
    shown = axis.drawn(run.curve.compute)
    compute, score = run.curve.compute[shown], run.curve.score[shown]
    fitted = np.full(compute.shape, False)
    if run.fit is not None:
        before_rl = (compute == 0) & (run.fit.r0 != "free")
        fitted = before_rl | (run.fit.window[0] <= compute) & (compute <= run.fit.window[1])
    fill = [style.colour if inside else "white" for inside in fitted]
    marker = {"symbol": style.symbol, "size": 6, "color": fill, "line": {"color": style.colour, "width": 1.2}}
    hover = f"{run.variant}, seed {run.seed}<br>%{{x:.4g}} GPU-hours: %{{y:.4f}}<extra></extra>"
    return Scatter(x=compute, y=score, mode="markers", marker=marker, hovertemplate=hover)


def _fitted_lines(fit: Fit, style: Style, axis: ComputeAxis) -> list["Scatter"]:
    """Solid inside the window, dashed on both sides of it."""
    from plotly.graph_objects import Scatter

    start, end = fit.window
    spans = [(axis.first if axis.log else 0.0, start, "dash"), (start, end, "solid"), (end, axis.last, "dash")]
    return [
        Scatter(
            x=grid,
            y=fit.predict(grid),
            mode="lines",
            line={"color": style.colour, "width": 2.2 if dash == "solid" else 1.6, "dash": dash},
            hoverinfo="skip",
        )
        for low, high, dash in spans
        if low < high
        for grid in [axis.grid(low, high)]
    ]


def _band(fit: Fit, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    grid = axis.grid(0.0, axis.last)
    low, high = fit.predict_interval(grid)
    return Scatter(
        x=np.concatenate([grid, grid[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=style.tint(0.13),
        line={"width": 0},
        hoverinfo="skip",
    )


def _asymptote_traces(
    variants: Sequence[FittedVariant], look: dict[str, Style], axis: ComputeAxis, score_range: tuple[float, float]
) -> list["Scatter"]:
    """A stroke at each asymptote at the right edge, led to a label that does not cover another."""
    from plotly.graph_objects import Scatter

    fitted = [variant for variant in variants if variant.fits]
    ends = [_right_end(variant, axis, score_range) for variant in fitted]
    gap = LABEL_GAP * (score_range[1] - score_range[0])
    heights = spread(ends, gap, score_range[0] + gap / 2, score_range[1] - gap / 2)
    return [
        Scatter(
            x=[axis.at(0.94), axis.at(0.98), axis.last],
            y=[end, end, height],
            mode="lines+text",
            line={"color": look[variant.name].colour, "width": 1.6},
            text=["", "", f" {variant.asymptote_text()}"],
            textposition="middle right",
            textfont={"color": look[variant.name].colour},
            cliponaxis=False,
            hoverinfo="skip",
            legendgroup=variant.name,
            showlegend=False,
        )
        for variant, end, height in zip(fitted, ends, heights, strict=True)
    ]


def _right_end(variant: FittedVariant, axis: ComputeAxis, score_range: tuple[float, float]) -> float:
    """Where a variant's stroke is: at A, or at the end of its curve where A has no upper bound or no place."""
    A = float(np.mean([fit.A for fit in variant.fits]))
    if variant.has_ceiling and score_range[0] <= A <= score_range[1]:
        return A
    return float(np.mean([fit.predict(axis.last)[0] for fit in variant.fits]))


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """`values` moved as little as need be, in squares, to lie `gap` apart and, where they fit, within [low, high].

    Isotonic regression by pooling adjacent violators (Ayer et al. 1955) of the values less the gaps below them.
    """
    order = np.argsort(values, kind="stable")
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        mean, size = values[index] - place * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, num_before = blocks.pop()
            mean, size = (before * num_before + mean * size) / (num_before + size), num_before + size
        blocks.append((mean, size))
    levels = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    levels = np.clip(levels, low, max(low, high - (len(order) - 1) * gap))
    moved = np.empty(len(order))
    moved[order] = levels + gap * np.arange(len(order))
    return moved.tolist()


def _mark(figure: "Figure", value: float, *, axis: str = "x", text: str = "", log: bool = False) -> None:
    """A dotted line at a value of a horizontal axis, named at its foot."""
    line = {"color": GREY, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=value, x1=value, y0=0, y1=1, xref=axis, yref="paper", layer="below", line=line)
    if text:
        # Plotly places shapes by value but annotations by logarithm.
        place = float(np.log10(value)) if log else value
        corner = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 11, "color": GREY}}
        figure.add_annotation(x=place, y=0, xref=axis, yref="paper", text=text, **corner)


def dress(figure: "Figure", *, height: int) -> None:
    """Give a figure the look that all share."""
    figure.update_layout(
        height=height, template="none", font=FONT, paper_bgcolor="white", plot_bgcolor="white", hovermode="closest"
    )
    lines = {"gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "ticks": "outside", "ticklen": 4}
    figure.update_xaxes(showline=True, **lines)
    figure.update_yaxes(showline=True, **lines)
