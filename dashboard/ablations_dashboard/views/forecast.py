"""What more compute would buy: forecasts of every variant, and who would lead."""

import pandas as pd
import streamlit as st

from ablations.forecast.of_sweep import SweepForecast, forecast_sweep
from ablations.forecast.words import budget_lines, curve_lines, forecast_notes
from ablations.report.forecast import FORECAST_LEGEND, forecast_figure
from ablations.report.headings import budget_headings, curve_headings, under
from ablations.verdict.results import Results
from ablations_dashboard.choose import choose_sweep
from ablations_dashboard.guard import errors_on_page
from ablations_dashboard.load import load_results

TIMES = (1, 2, 3, 5, 10)
"""Budgets that may be chosen, in budgets of the sweep."""


@errors_on_page()
def show() -> None:
    """Choose a sweep and a budget; show the forecasts there."""
    sweep = choose_sweep()
    plan, results = sweep.plan, load_results(sweep)
    st.title(f"{plan.sweep}: what more compute would buy")
    if not any(variant.fits for variant in results.variants):
        st.info(f"No fit yet. {'; '.join(results.reasons)}.")
        st.stop()
    times = choose_times()
    names = [variant.name for variant in results.variants]
    banded = st.multiselect("Uncertainty of", names, default=[plan.reference], key=f"forecast band {plan.sweep}")
    compute = times * plan.budget_gpu_hours
    st.plotly_chart(forecast_figure(results, banded=banded, compute=compute), theme=None, key="forecast")
    st.caption(FORECAST_LEGEND)
    show_tables(forecast_sweep(results, budgets_gpu_hours=[compute]), results)


def choose_times() -> int:
    """The budget named in the URL, or twice the sweep's."""
    asked = {str(times): times for times in TIMES}.get(st.query_params.get("times", ""), 2)
    chosen = st.select_slider("Compute, in budgets of the sweep", TIMES, value=asked)
    st.query_params["times"] = str(chosen)
    return chosen


def show_tables(found: SweepForecast, results: Results) -> None:
    """Every variant at the chosen budget and at any, and what has no forecast."""
    for lines in (
        under(budget_headings(found), budget_lines(found, 0)),
        under(curve_headings(found), curve_lines(found)),
    ):
        st.dataframe(pd.DataFrame(lines), hide_index=True)
    unit = results.plan.compute_unit_gpu_hours
    command = f"platform forecast {found.sweep} --budget {found.budgets_gpu_hours[0] / unit:g}"
    counted_in = results.plan.compute_name.capitalize().replace("gpu", "GPU")
    st.caption(f"{counted_in}. `{command}` prints the same; `--backtest` shows how such forecasts have held.")
    st.caption(" ".join(forecast_notes(found)))
    for reason in found.reasons:
        st.warning(f"No forecast: {reason}")
