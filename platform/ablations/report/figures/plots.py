"""The common figures of a sweep by one call each, for Python, notebooks and papers.

A small PNG, for example for an artifact of MLflow:

    picture = curves_picture(results, "png", dpi=150)  # bytes, about 500 x 480 pixels and 40 kB
    Path("curves.png").write_bytes(picture)

`shown={plan.reference, "loo-loss"}` draws a variant beside the reference alone. matplotlib takes long to import, so
only the functions that need it do.
"""

from collections.abc import Collection, Sequence

from plotly.graph_objects import Figure

from ablations.findings.results import Results
from ablations.report.figures.chart import COLUMN_IN, PictureFormat
from ablations.report.figures.curves import curves_chart
from ablations.report.figures.forecast import forecast_chart
from ablations.report.figures.forest import forest_chart
from ablations.report.figures.plotly_chart import on_screen


def curves_figure(
    results: Results, *, shown: Collection[str] | None = None, log_compute: bool = False, with_points: bool = False
) -> Figure:
    """Pass rate against compute with fits, their continuation beyond the budget, and asymptotes, as a figure of Plotly.

    `shown` are the variants in colour, by default the reference and those with the highest level; all else are grey.
    `with_points` also draws the evaluations, filled if they were fitted.
    """
    return on_screen(curves_chart(results, shown=shown, log_compute=log_compute, with_points=with_points))


def verdicts_figure(results: Results, *, shown: Sequence[str] | None = None, stacked: bool = False) -> Figure:
    """Every variant's differences in level, ceiling and compute, with intervals, best first, as a figure of Plotly.

    `shown` are the variants of the rows, all by default. `stacked` is the layout for a narrow screen.
    """
    return on_screen(forest_chart(results, shown=shown), is_narrow=stacked)


def forecast_figure(results: Results, *, banded: Collection[str] | None = None) -> Figure:
    """Pass rate of every variant with a forecast against log compute to ten budgets, as a figure of Plotly.

    `banded` are the variants with an uncertainty band (the reference by default).
    """
    return on_screen(forecast_chart(results, banded=banded))


def curves_picture(
    results: Results,
    kind: PictureFormat,
    *,
    width_in: float = COLUMN_IN,
    shown: Collection[str] | None = None,
    dpi: int = 300,
) -> bytes:
    """`curves_figure` as SVG, PDF or PNG. `shown` is as there, without grey lines; `dpi` applies to a PNG."""
    from ablations.report.figures.paper_chart import picture

    chart = curves_chart(results, shown=shown, others=None if shown is None else ())
    return picture(chart, kind, width_in=width_in, dpi=dpi)


def differences_picture(results: Results, kind: PictureFormat, *, width_in: float = COLUMN_IN, dpi: int = 300) -> bytes:
    """`verdicts_figure` as SVG, PDF or PNG, with the panels side by side, or stacked within one column."""
    from ablations.report.figures.paper_chart import picture

    return picture(forest_chart(results), kind, width_in=width_in, dpi=dpi)
