"""The curves on a screen: a few variants in colour, the others grey, against compute or another counter of the runs.

Unlike the picture for a paper (`static`), the figure has no labels at its right edge, since a narrow screen has no
room: the legend gives each A. Readings are thinned to the resolution of a screen, and the seeds of a variant share one
line, their mean.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ablations.answers.forecasts import joint_draws
from ablations.answers.run_to_run import RunToRun
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import spread_of
from ablations.fit.result import Fit
from ablations.report.axes import EXTRAPOLATED_TO, ComputeAxis, compute_axis
from ablations.report.colours import Style, styles
from ablations.report.rounding import label_of_asymptote
from ablations.report.series import is_fitted
from ablations.report.style import dress, in_hover, mark, plain
from ablations.report.thinning import most_points_of_run, thinned

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

SCREEN_LEGEND = (
    "Filled points were fitted, hollow ones were not. Lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), the mean "
    "over seeds; dashes are extrapolated to twice the budget, bands are 95 % intervals of the fitted curve. A stroke "
    "at the right edge is A with its 95 % interval; an A without an upper end has none. A click on a name in the "
    "legend hides a variant, a double click all others."
)
"""Caption of `curves_figure`."""
CURVES_LEGEND = (
    "Filled points were fitted, hollow ones were not; lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), dashes are "
    "extrapolated to twice the budget, bands are 95 % intervals of the fitted curve. At the right edge a stroke is at "
    "A; an arrow says that A lies there or higher."
)
"""Caption of `static.curves_picture`."""
LEGEND_LINE_PX = 20
OTHERS_COLOUR = "#b0b6bd"
NUM_GRID_POINTS = 80
Along = Callable[[np.ndarray], np.ndarray]
"""Function from compute to the horizontal axis, for one run or variant."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counter on the horizontal axis: `Counted(title="training tokens", name="tokens", along={"scalerl": ...})`."""

    title: str
    name: str
    """The unit, for hover texts."""
    along: Mapping[str, Along]
    """Functions by variant; a variant without one is left out."""


def counted_compute(results: Results) -> Counted:
    """Compute itself as the counter."""
    plan = results.plan
    title = f"compute ({plan.compute_name})"
    return Counted(title=title, name=plan.hours_name, along={one.name: lambda C: C for one in results.variants})


def along_rows(compute: np.ndarray, counted: np.ndarray) -> Along:
    """A function from compute to a counter of a run: linear between two evaluations, and at the mean rate beyond the
    last.

        along_rows(np.array([0, 10]), np.array([0, 500]))(np.array([5, 20])) is [250, 1000]
    """
    last, rate = compute[-1], counted[-1] / compute[-1] if compute[-1] else 0.0
    return lambda C: np.interp(C, compute, counted) + rate * np.clip(np.asarray(C, dtype=float) - last, 0, None)


def curves_figure(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    others: Collection[str] = (),
    banded: Collection[str] | None = None,
    log_compute: bool = False,
    counted: Counted | None = None,
) -> "Figure":
    """Pass rate against compute with fits, forecasts to twice the budget and asymptotes.

    `shown` are the variants drawn in colour (all by default), `banded` those with an uncertainty band (the reference by
    default), and `others` the grey lines. A click on a name in the legend hides everything of that variant.
    AblationsError for an unknown variant.
    """
    from plotly.graph_objects import Figure

    counted = counted or counted_compute(results)
    look, budget = styles(results.plan), results.plan.budget_gpu_hours
    banded = [results.plan.reference] if banded is None else banded
    wanted = results.variants if shown is None else [results.variant(name) for name in shown]
    chosen = [variant for variant in wanted if variant.name in counted.along]
    most = most_points_of_run(sum(len(variant.runs) for variant in chosen))
    axis = compute_axis(results, log=log_compute)
    figure = Figure()
    grey = [variant for name in others if name in counted.along and (variant := results.variant(name)).fits]
    if grey:
        figure.add_trace(_grey_lines(grey, axis.first, budget, counted))
    for variant in chosen:
        along, style = counted.along[variant.name], look[variant.name]
        if variant.fits and variant.name in banded:
            figure.add_trace(_interval(variant, spread_of(results), style, axis.first, budget, along))
        if variant.fits:
            figure.add_traces(_mean_lines(variant, style, axis.first, budget, along))
        figure.add_traces(_readings(variant, style, most, counted, axis))
        figure.add_traces(_ceiling(results, variant, style, budget, along))
        figure.add_trace(_entry(results, variant, style))
    for place, text in ((results.plan.fit_to_gpu_hours, "fitted up to here"), (budget, "budget")):
        if counted.name == results.plan.hours_name and (text == "budget" or place < budget):
            mark(figure, place, text=text, log=log_compute)
    dress(figure, height=540 + LEGEND_LINE_PX * -(-len(chosen) // 3))
    figure.update_xaxes(title=counted.title, type="log" if log_compute else "linear")
    figure.update_yaxes(title="held-out pass rate")
    figure.update_layout(
        margin={"l": 60, "r": 15, "t": 20, "b": 60},
        legend={"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0, "itemsizing": "constant"},
    )
    return figure


def _grid(low: float, high: float) -> np.ndarray:
    """Compute points that are dense near the beginning, where curves bend, on either kind of axis."""
    return np.unique(np.concatenate([np.geomspace(low, high, NUM_GRID_POINTS // 2), np.linspace(low, high, 40)]))


def _mean(fits: Sequence[Fit], compute: np.ndarray) -> np.ndarray:
    return np.mean([fit.predict(compute) for fit in fits], axis=0)


def _grey_lines(variants: Sequence[FittedVariant], first: float, budget: float, counted: Counted) -> "Scatter":
    """All other variants in one trace, told apart by hover texts."""
    from plotly.graph_objects import Scatter

    x, y, names = [], [], []
    for variant in variants:
        grid = np.geomspace(first, budget, 24)
        x += [*counted.along[variant.name](grid), None]
        y += [*np.round(_mean(variant.fits, grid), 5), None]
        names += [plain(variant.name)] * 25
    return Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": OTHERS_COLOUR, "width": 1},
        text=names,
        hovertemplate="%{text}: %{y:.4f}<extra></extra>",
        name=f"{len(variants)} others",
    )


def _mean_lines(variant: FittedVariant, style: Style, first: float, budget: float, along: Along) -> list["Scatter"]:
    """The mean of the seeds' curves: solid if all were fitted there, dashed before and beyond."""
    from plotly.graph_objects import Scatter

    fits = variant.fits
    start = max(first, max(fit.window[0] for fit in fits))
    end = max(start, min(fit.window[1] for fit in fits))
    last = max(EXTRAPOLATED_TO * budget, end)
    inside, before, beyond = _grid(start, end), _grid(first, start), _grid(end, last)
    gap = np.array([np.nan])
    spans = [(inside, "solid", 2.4), (np.concatenate([before, gap, beyond]), "dash", 1.7)]
    return [
        Scatter(
            x=along(grid),
            y=np.round(_mean(fits, np.nan_to_num(grid, nan=first)) + 0 * grid, 5),
            mode="lines",
            line={"color": style.colour, "width": width, "dash": dash},
            hovertemplate=f"{in_hover(variant.name)} fit: %{{y:.4f}}<extra></extra>",
            connectgaps=False,
            **_belongs(variant),
        )
        for grid, dash, width in spans
    ]


def _interval(
    variant: FittedVariant, spread: RunToRun, style: Style, first: float, budget: float, along: Along
) -> "Scatter":
    from plotly.graph_objects import Scatter

    grid = np.geomspace(first, EXTRAPOLATED_TO * budget, NUM_GRID_POINTS)
    if len(variant.fits) == 1:
        low, high = variant.fits[0].predict_interval(grid)
    else:
        low, high = np.quantile(joint_draws(variant.fits, grid, spread=spread), (0.025, 0.975), axis=0)
    x = along(grid)
    return Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.round(np.concatenate([high, low[::-1]]), 5),
        mode="lines",
        fill="toself",
        fillcolor=style.tint(0.16),
        line={"width": 0},
        hoverinfo="skip",
        **_belongs(variant),
    )


def _readings(variant: FittedVariant, style: Style, most: int, counted: Counted, axis: ComputeAxis) -> list["Scatter"]:
    """The readings of all seeds in one trace, filled if they were fitted."""
    from plotly.graph_objects import Scatter

    found: list[tuple[float, float, str, str]] = []
    for run in variant.runs:
        if run.curve is None:
            continue
        shown = axis.drawn(run.curve.compute)
        compute, score, sizes = thinned(run.curve.compute[shown], run.curve.score[shown], most)
        x = counted.along[variant.name](compute)
        for at, value, size, is_full in zip(x, score, sizes, is_fitted(run.fit, compute), strict=True):
            of = f"seed {run.seed}" if size == 1 else f"seed {run.seed}, mean of {size} readings"
            found.append((float(at), round(float(value), 5), of, style.symbol if is_full else f"{style.symbol}-open"))
    if not found:
        return []
    x, y, texts, symbols = (list(column) for column in zip(*found, strict=True))
    marker = {"symbol": symbols, "size": 6, "color": style.colour, "opacity": 0.75}
    hover = f"{in_hover(variant.name)}, %{{text}}<br>%{{x:.4g}} {counted.name}: %{{y:.4f}}<extra></extra>"
    return [Scatter(x=x, y=y, text=texts, mode="markers", marker=marker, hovertemplate=hover, **_belongs(variant))]


def _ceiling(results: Results, variant: FittedVariant, style: Style, budget: float, along: Along) -> list["Scatter"]:
    """A stroke at A at the right edge, with its interval; nothing if A has no upper end."""
    from plotly.graph_objects import Scatter

    found = results.asymptote(variant)
    if found is None or not found.is_bounded or found.hi is None:
        return []
    ends = along(np.array([1.9, 2.0]) * budget)
    return [
        Scatter(
            x=ends,
            y=[found.A, found.A],
            mode="lines",
            line={"color": style.colour, "width": 3},
            hovertemplate=f"{in_hover(variant.name)}: {in_hover(label_of_asymptote(found))}<extra></extra>",
            **_belongs(variant),
        ),
        Scatter(
            x=[ends[1]] * 2,
            y=[found.lo, found.hi],
            mode="lines",
            line={"color": style.colour, "width": 1},
            hoverinfo="skip",
            **_belongs(variant),
        ),
    ]


def _entry(results: Results, variant: FittedVariant, style: Style) -> "Scatter":
    """The legend entry of a variant, with its A; it draws nothing."""
    from plotly.graph_objects import Scatter

    found = results.asymptote(variant)
    name = plain(variant.name)
    return Scatter(
        x=[None],
        y=[None],
        mode="lines+markers",
        line={"color": style.colour},
        marker={"symbol": style.symbol, "size": 8, "color": style.colour},
        name=f"{name}: {plain(label_of_asymptote(found))}" if found else f"{name}: no fit",
        legendgroup=variant.name,
    )


def _belongs(variant: FittedVariant) -> dict[str, Any]:
    return {"legendgroup": variant.name, "showlegend": False}
