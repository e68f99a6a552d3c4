"""Forecasts of every variant at more compute, the likely leader, and the accuracy of such forecasts so far."""

from collections.abc import Hashable
from zlib import crc32

import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from ablations.errors import AblationsError
from ablations.findings.backtest import Backtest
from ablations.findings.results import Results
from ablations.findings.several_sweeps import with_baseline
from ablations.findings.sweep_forecast import SweepForecast, backtest_sweep, forecast_sweep, spread_of
from ablations.report.forecast import FORECAST_LEGEND, chances_figure, forecast_figure
from ablations.report.words.forecast import budget_rows, curve_rows, forecast_notes
from ablations.terminal.visible import made_visible
from ablations.text import compute_text
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.reading.cache import load_results
from ablations_dashboard.selection.baseline import choose_baseline
from ablations_dashboard.selection.sweeps import choose_sweep
from ablations_dashboard.selection.url import in_url, pick, pick_several, put_in_url, switch, widget_key
from ablations_dashboard.selection.variants import choose_variants, only
from ablations_dashboard.widgets.figure import show_figure
from ablations_dashboard.widgets.message import errors_on_page
from ablations_dashboard.widgets.table import show_table

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
    found = cached_forecast(compute, score, forecast_sources(results), results)
    st.caption(f"{times} times the budget of the sweep; the slider goes to ten times.")
    curves, chances = st.columns([7, 4])  # one below the other where the screen is narrow
    with curves:
        show_figure(
            cached_figure(tuple(banded), forecast_sources(results), results),
            name=f"{plan.sweep}-forecast",
            alt="Forecast pass rate against compute",
        )
    with chances:
        st.markdown(in_markdown(f"P(wins) at {said(times)}"))
        show_figure(
            chances_figure(results, [one.outlooks[0].chance for one in found.variants]),
            name=f"{plan.sweep}-chances",
            alt="Each variant's probability to lead; the table below has the numbers",
        )
    st.caption(FORECAST_LEGEND)
    show_forecast_tables(found, results)
    show_backtest(results)


def choose_target() -> float | None:
    """The pass rate, from the URL, whose compute is wanted."""
    key = widget_key("target")
    given = next(iter(in_url("target")), "")
    st.session_state.setdefault(key, float(given) if given.replace(".", "", 1).isdigit() else None)
    target = st.number_input("Pass rate to reach", 0.001, 1.0, step=0.01, format="%.3f", key=key)
    put_in_url("target", [] if target is None else [f"{target:g}"])
    return target


def show_forecast_tables(found: SweepForecast, results: Results) -> None:
    """Show every variant at the chosen budget and at any budget, and the variants without a forecast."""
    plan = results.plan
    for name, rows in (("at-budget", budget_rows(found, 0)), ("crossings", curve_rows(found))):
        show_table(pd.DataFrame(rows).map(made_visible), name=f"{plan.sweep}-{name}")
    command = f"platform forecast {found.sweep} --budget {found.budgets_gpu_hours[0] / plan.budget_gpu_hours:g}x"
    counted_in = plan.compute_name.capitalize().replace("gpu", "GPU")
    st.caption(f"{counted_in}. {in_code(command)} prints the same.")
    st.caption(with_code(" ".join(forecast_notes(found))))
    if found.reasons:
        st.warning("\n".join(["No forecast:", "", *(f"* {in_markdown(reason)}" for reason in found.reasons)]))


def show_backtest(results: Results) -> None:
    """Show the accuracy of forecasts from the first part of each finished run; on demand, at some seconds per run."""
    if not switch("backtest", "Backtest: how such forecasts have held"):
        return
    try:
        found = cached_backtest(forecast_sources(results), results)
    except AblationsError as error:
        st.info(with_code(str(error)))
        return
    scores = [
        {
            "fitted on": f"{one.fraction:.0%}",
            "runs": one.num_runs,
            "mean error": one.mean_error,
            "mean |error|": one.mean_absolute_error,
            "95 % intervals that held": one.coverage,
            "mean |error| of no more gain": one.carried_mean_absolute_error,
        }
        for one in found.scores
    ]
    checks = [
        {
            "run": made_visible(one.curve),
            "fitted on": f"{one.fraction:.0%}",
            "measured": one.measured,
            "predicted": one.predicted,
            "held": {True: "yes", False: "no", None: ""}[one.is_held],
            "error": one.error,
            "why none": made_visible(one.reason),
        }
        for one in found.checks
    ]
    show_table(pd.DataFrame(scores), name=f"{results.plan.sweep}-backtest")
    with st.expander("Run by run"):
        show_table(pd.DataFrame(checks), name=f"{results.plan.sweep}-backtest-runs")


def forecast_sources(results: Results) -> Hashable:
    """What determines a forecast: the plan, the readings of every run, and the spread between runs."""
    plan = results.plan
    runs = tuple(
        (run.variant, run.id, crc32(run.curve.compute.tobytes() + run.curve.score.tobytes()))
        for run in results.runs
        if run.curve is not None
    )
    return plan.sweep, plan.reference, plan.budget_gpu_hours, plan.fit_settings, spread_of(results).sd, runs


# Only the arguments without a leading underscore form the key; the others follow from them.
@st.cache_resource(max_entries=64, show_spinner="Forecasting the variants …")
def cached_forecast(compute: float, score: float | None, sources: Hashable, _results: Results) -> SweepForecast:
    """The forecasts at one budget, and to a target."""
    return forecast_sweep(_results, budgets_gpu_hours=[compute], score=score)


@st.cache_resource(max_entries=16, show_spinner="Forecasting the curves …")
def cached_figure(banded: tuple[str, ...], sources: Hashable, _results: Results) -> Figure:
    """The figure of the forecast curves."""
    return forecast_figure(_results, banded=banded)


@st.cache_resource(max_entries=8, show_spinner="Forecasting each run from its first part …")
def cached_backtest(sources: Hashable, _results: Results) -> Backtest:
    """The backtest of the finished runs."""
    return backtest_sweep(_results)
