"""Plotly figures of a sweep, made once from plain data: the report, the page and MLflow show the same ones.

    curves     pass rate against compute, with fits, forecasts and asymptotes
    ceilings   the ceiling of every variant and the compute it needs, with intervals
    axes       what part of compute and pass rate a figure of curves shows
    style      one colour and marker a variant, and the look that all figures share

Points are measured (hollow ones were not fitted), lines are fitted, dashes are extrapolated, a band is the 95 %
interval of the fitted curve. Plotly is imported inside functions: the command line must start quickly.
"""

from ablations.figures.ceilings import loo_figure
from ablations.figures.curves import CURVES_LEGEND, curves_figure, variant_figure
from ablations.figures.style import Style, dress, styles

__all__ = ["CURVES_LEGEND", "Style", "curves_figure", "dress", "loo_figure", "styles", "variant_figure"]
