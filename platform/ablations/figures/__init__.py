"""Plotly figures of a sweep, made once from plain data: the report, the page and MLflow show the same ones.

    curves      pass rate against compute, with fits, forecasts and asymptotes
    ceilings    the ceiling of every variant and the compute it needs, with intervals
    linearised  readings on axes on which eq. 1 is a straight line (paper mode)
    forecast    pass rates to ten budgets, and who is likely to lead there
    axes        what part of compute and pass rate a figure of curves shows
    style       one colour and marker a variant, and the look that all figures share

Points are measured (hollow ones were not fitted), lines are fitted, dashes are extrapolated, a band is the 95 %
interval of the fitted curve. Plotly is imported inside functions: the command line must start quickly.
"""

from ablations.figures.ceilings import loo_figure
from ablations.figures.curves import CURVES_LEGEND, curves_figure, variant_figure
from ablations.figures.forecast import FORECAST_LEGEND, forecast_figure
from ablations.figures.linearised import LINEARISED_LEGEND, linearised_figure, linearised_note
from ablations.figures.style import Style, dress, styles

__all__ = [
    "CURVES_LEGEND",
    "FORECAST_LEGEND",
    "LINEARISED_LEGEND",
    "Style",
    "curves_figure",
    "dress",
    "forecast_figure",
    "linearised_figure",
    "linearised_note",
    "loo_figure",
    "styles",
    "variant_figure",
]
