"""Forecasts of every variant at more compute, the likely leader, and the accuracy of such forecasts so far."""

from collections.abc import Hashable
from zlib import crc32

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.backtest import Backtest
from ablations.findings.results import Results
from ablations.findings.several_sweeps import with_baseline
from ablations.findings.sweep_forecast import SweepForecast, backtest_sweep, forecast_sweep, spread_of
from ablations.report.documents.forecast import backtest_document, forecast_document
from ablations.report.figures.chart import Chart
from ablations.report.figures.forecast import FORECAST_LEGEND, chances_chart, forecast_chart
from ablations.text import compute_text
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import load_results
from ablations_dashboard.selection.baseline import choose_baseline
from ablations_dashboard.selection.sweeps import choose_sweep
from ablations_dashboard.selection.url import in_url, pick, pick_several, put_in_url, switch, widget_key
from ablations_dashboard.selection.variants import choose_variants, only
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.message import errors_on_page

BUDGET_TIMES = ("1", "1.25", "1.5", "2", "2.5", "3", "4", "5", "7", "10")
"""Budgets to choose from, in multiples of the sweep's budget."""


@errors_on_page()
def show() -> None:
    """Choose a sweep and a budget; show the forecasts there."""
    sweep = choose_sweep()
    sweep = with_baseline(sweep, choose_baseline(sweep.plan))
    results = load_results(sweep)
    st.title(f"{in_markdown(sweep.name)}: what more compute would buy")
    if not any(variant.fits for variant in results.variants):
        st.info(in_markdown(f"No fit yet. {'; '.join(results.reasons)}."))
        st.stop()
    shown = choose_variants(results)
    st.fragment(show_forecast)(only(results, shown.focus))


@errors_on_page()
def show_forecast(results: Results) -> None:
    """Show the forecasts at a budget, and to a target."""
    plan = results.plan
    unit = plan.hours_name

    def said(times: str) -> str:
        return f"{compute_text(float(times) * plan.budget_gpu_hours)} {unit}"

    left, middle, right = st.columns([3, 2, 3])
    with left:
        times = pick("times", "Compute per run", BUDGET_TIMES, default="2", widget=st.select_slider, format_func=said)
    with middle:
        score = choose_target()
    with right:
        names = [variant.name for variant in results.variants]
        banded = pick_several("forecast_band", "Uncertainty of", names, scope=plan.sweep) or [plan.reference]
    compute = float(times) * plan.budget_gpu_hours
    found = cached_forecast(results, compute, score)
    st.caption(f"{times} times the budget of the sweep; the slider goes to ten times.")
    curves, chances = st.columns([7, 4])  # one below the other where the screen is narrow
    with curves:
        show_figure(cached_chart(results, tuple(banded)), name=f"{plan.sweep}-forecast")
    with chances:
        st.markdown(in_markdown(f"P(wins), the probability of being highest, at {said(times)}"))
        chart = chances_chart(results, [one.outlooks[0].chance for one in found.variants])
        show_figure(chart, name=f"{plan.sweep}-chances")
    st.caption(FORECAST_LEGEND)
    show_document(forecast_document(found, plan.compute_name), scope=plan.sweep)
    command = f"platform forecast {plan.sweep} --budget {times}x{results.sweep.home.end_of_command}"
    st.caption(f"{in_code(command)} prints the same tables.")
    show_backtest(results)


def choose_target() -> float | None:
    """The pass rate to reach, as given in the URL."""
    key = widget_key("target")
    given = next(iter(in_url("target")), "")
    st.session_state.setdefault(key, float(given) if given.replace(".", "", 1).isdigit() else None)
    target = st.number_input("Pass rate to reach", 0.001, 1.0, step=0.01, format="%.3f", key=key)
    put_in_url("target", [] if target is None else [f"{target:g}"])
    return target


def show_backtest(results: Results) -> None:
    """Show the accuracy of forecasts made from the first part of each finished run; only on demand, since it takes
    seconds per run."""
    if not switch("backtest", "Backtest: how accurate such forecasts have been"):
        return
    try:
        found = cached_backtest(results)
    except AblationsError as error:
        st.info(with_code(str(error)))
        return
    show_document(backtest_document(found, results.plan.sweep), scope=results.plan.sweep)


def forecast_sources(results: Results) -> Hashable:
    """What determines a forecast: the plan, the readings of every run, and the spread between runs."""
    plan = results.plan
    runs = tuple(
        (run.variant, run.id, crc32(run.curve.compute.tobytes() + run.curve.score.tobytes()))
        for run in results.runs
        if run.curve is not None
    )
    return plan.sweep, plan.reference, plan.budget_gpu_hours, plan.fit_settings, spread_of(results).sd, runs


@st.cache_resource(max_entries=64, show_spinner="Forecasting the variants …", hash_funcs={Results: forecast_sources})
def cached_forecast(results: Results, compute: float, score: float | None) -> SweepForecast:
    """The forecasts at one budget, and to a target."""
    return forecast_sweep(results, budgets_gpu_hours=[compute], score=score)


@st.cache_resource(max_entries=16, show_spinner="Forecasting the curves …", hash_funcs={Results: forecast_sources})
def cached_chart(results: Results, banded: tuple[str, ...]) -> Chart:
    """The chart of the forecast curves."""
    return forecast_chart(results, banded=banded)


@st.cache_resource(
    max_entries=8, show_spinner="Forecasting each run from its first part …", hash_funcs={Results: forecast_sources}
)
def cached_backtest(results: Results) -> Backtest:
    """The backtest of the finished runs."""
    return backtest_sweep(results)
