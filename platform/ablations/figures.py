"""Plotly figures of a sweep, made once from plain data: the report, the page and MLflow show the same ones.

One colour and marker a variant. Points are measured (hollow ones were not fitted), lines are fitted, dashes are
extrapolated, a band is the 95 % interval of the fitted curve.

Plotly is imported inside functions: the command line must start quickly.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ablations.fit import Fit
from ablations.plan import Plan
from ablations.results import Results, RunResult, VariantResult

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
        ends = [self.at(-0.02), self.last]
        return {
            "title": "compute (modelled GPU-hours)",
            "type": "log" if self.log else "linear",
            "range": list(np.log10(ends)) if self.log else ends,
        }


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
    _mark(figure, plan.fit_to_gpu_hours, "fitted up to here" if plan.fit_to_gpu_hours < plan.budget_gpu_hours else "")
    _mark(figure, plan.budget_gpu_hours, "budget")
    figure.update_xaxes(**axis.layout)
    figure.update_yaxes(title="held-out pass rate", range=score_range)
    _dress(figure, height=620)
    figure.update_layout(
        margin={"l": 70, "r": 205, "t": 30, "b": 70},
        legend={"orientation": "h", "yanchor": "top", "y": -0.13, "x": 0, "itemsizing": "constant"},
    )
    return figure


def variant_figure(results: Results, name: str) -> "Figure":
    """One variant beside the reference, both with their uncertainty."""
    pair = {results.plan.reference, name}
    return curves_figure(results, shown=pair, banded=pair)


def _compute_axis(results: Results, *, log: bool) -> ComputeAxis:
    last = EXTRAPOLATED_TO * results.plan.budget_gpu_hours
    measured = [run.curve.compute[run.curve.compute > 0] for run in results.runs if run.curve is not None]
    first = min((float(compute[0]) for compute in measured if compute.size), default=last / 100)
    return ComputeAxis(first=first, last=last, log=log)


def _score_range(variants: Sequence[VariantResult], axis: ComputeAxis) -> tuple[float, float]:
    """From the lowest reading to the highest reading or fitted curve, with some air."""
    values = [value for variant in variants for run in variant.runs for value in _extremes(run, axis)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    air = 0.06 * max(high - low, 0.02)
    return low - air, high + air


def _extremes(run: RunResult, axis: ComputeAxis) -> list[float]:
    measured = [] if run.curve is None else [float(run.curve.score.min()), float(run.curve.score.max())]
    fitted = [] if run.fit is None else [float(run.fit.predict(axis.last)[0])]
    return measured + fitted


def _variant_traces(variant: VariantResult, style: Style, axis: ComputeAxis, *, banded: bool) -> list["Scatter"]:
    traces = []
    for run in variant.runs:
        if run.fit is not None:
            traces += [_band(run.fit, style, axis)] if banded else []
            traces += _fitted_lines(run.fit, style, axis)
    traces += [_points(run, style, axis) for run in variant.runs if run.curve is not None]
    for trace in traces:
        trace.update(legendgroup=variant.name, name=variant.name, showlegend=False)
    if traces:
        traces[-1].update(showlegend=True)
    return traces


def _points(run: RunResult, style: Style, axis: ComputeAxis) -> "Scatter":
    from plotly.graph_objects import Scatter

    assert run.curve is not None
    shown = axis.drawn(run.curve.compute)
    compute, score = run.curve.compute[shown], run.curve.score[shown]
    fitted = np.full(compute.shape, False)
    if run.fit is not None:
        fitted = (run.fit.window[0] <= compute) & (compute <= run.fit.window[1])
    fill = [style.colour if inside else "white" for inside in fitted]
    marker = {"symbol": style.symbol, "size": 6, "color": fill, "line": {"color": style.colour, "width": 1.2}}
    hover = f"{run.variant}, seed {run.seed}<br>%{{x:.4g}} GPU-hours: %{{y:.4f}}<extra></extra>"
    # Line and its colour are for the legend, which shows the first point's fill otherwise.
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
    variants: Sequence[VariantResult], look: dict[str, Style], axis: ComputeAxis, score_range: tuple[float, float]
) -> list["Scatter"]:
    """A stroke at each asymptote at the right edge, led to a label that does not cover another."""
    from plotly.graph_objects import Scatter

    fitted = [variant for variant in variants if variant.fits]
    ends = [_right_end(variant, axis, score_range) for variant in fitted]
    heights = spread(ends, LABEL_GAP * (score_range[1] - score_range[0]))
    return [
        Scatter(
            x=[axis.at(0.965), axis.at(1.0), axis.at(1.02)],
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


def _right_end(variant: VariantResult, axis: ComputeAxis, score_range: tuple[float, float]) -> float:
    """Where a variant's stroke is: at A, or at the end of its curve where A has no upper bound or no place."""
    A = variant.fits[0].A
    if variant.is_bounded and score_range[0] <= A <= score_range[1]:
        return A
    return float(variant.fits[0].predict(axis.last)[0])


def spread(values: Sequence[float], gap: float) -> list[float]:
    """`values` moved as little as they must be to lie `gap` apart, in their order; the least sum of squared moves.

    Pool adjacent violators (Ayer et al. 1955) on the values less what the gaps before them add up to.
    """
    order = np.argsort(values, kind="stable")
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        mean, size = values[index] - place * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, num_before = blocks.pop()
            mean, size = (before * num_before + mean * size) / (num_before + size), num_before + size
        blocks.append((mean, size))
    level = [mean for mean, size in blocks for _ in range(size)]
    moved = [0.0] * len(order)
    for place, index in enumerate(order):
        moved[index] = level[place] + place * gap
    return moved


def _mark(figure: "Figure", compute: float, text: str) -> None:
    """A dotted line at a compute, named at its foot."""
    if text:
        figure.add_vline(
            compute,
            line={"color": GREY, "width": 1, "dash": "dot"},
            annotation={"text": text, "font": {"size": 11, "color": GREY}},
            annotation_position="bottom right",
        )


def _dress(figure: "Figure", *, height: int) -> None:
    """The look that all figures share."""
    figure.update_layout(
        height=height, template="none", font=FONT, paper_bgcolor="white", plot_bgcolor="white", hovermode="closest"
    )
    lines = {"gridcolor": "#eceff2", "linecolor": "#c5cad0", "zeroline": False, "ticks": "outside", "ticklen": 4}
    figure.update_xaxes(showline=True, **lines)
    figure.update_yaxes(showline=True, **lines)
