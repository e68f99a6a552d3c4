"""The forecast page, run by AppTest over a home folder with finished runs."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest
from dashboard.app_pages import figures_of, open_page
from fixtures_home import BUDGET, TRUTH, changed, make_home
from streamlit.testing.v1 import AppTest

from ablations.findings.results import read_results
from ablations.findings.sweep_forecast import backtest_sweep, forecast_sweep
from ablations.report.figures.chart import elided
from ablations.report.figures.plotly_chart import WIDE
from ablations_dashboard.views.forecast import forecast_sources


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


def test_the_page_forecasts_every_variant_at_twice_the_budget(monkeypatch, finished):
    page = open_page(monkeypatch, finished.home.path, "forecast")
    table = page.dataframe[0].value
    found = forecast_sweep(read_results(finished), budgets_gpu_hours=[2 * BUDGET])
    assert list(table["variant"]) == list(TRUTH)
    for line, one in zip(table.to_dict("records"), found.variants, strict=True):
        at = one.outlooks[0].prediction
        assert (line["pass rate"], line["P(wins)"]) == (at.estimate, one.outlooks[0].chance.wins)
    reference, less, *_ = table["− scalerl"]
    assert np.isnan(reference)
    assert -0.1 < less < 0
    assert f"`platform forecast loo --budget 2x --home {finished.home.path}`" in captions(page)
    assert "errors of such forecasts for the 3 finished runs" in captions(page)
    crossings = page.dataframe[1].value
    assert list(crossings["variant"]) == list(TRUTH)
    # A of 0.54 against 0.61 at the same C_mid: the reference leads for good.
    assert list(crossings["then leads scalerl"])[1] < 0.05


def test_without_a_fit_the_page_says_why(monkeypatch, tmp_path):
    make_home(tmp_path, fraction=0.05, state="running")
    page = open_page(monkeypatch, tmp_path, "forecast")
    assert "a fit needs at least 6" in page.info[0].value


def test_a_pass_rate_to_reach_has_its_compute(monkeypatch, finished):
    page = open_page(monkeypatch, finished.home.path, "forecast", target="0.5")
    found = forecast_sweep(read_results(finished), budgets_gpu_hours=[2 * BUDGET], score=0.5)
    table = page.dataframe[1].value.set_index("variant")
    reach = found.variants[0].reach
    assert table.loc["scalerl", "reaches 0.5 at"] == reach.estimate
    # 0.5 = 0.31 + 0.30 / (1 + (320 / C)^1.92), so C = 320 (0.19 / 0.11)^(1 / 1.92)
    assert reach.estimate == pytest.approx(320 * (0.19 / 0.11) ** (1 / 1.92), rel=0.03)
    page.number_input[0].set_value(0.4).run()
    assert page.query_params["target"] == "0.4"
    assert "reaches 0.4 at" in page.dataframe[1].value


def test_names_with_markup_are_text_in_both_figures(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    hostile = "<a href='https://elsewhere.example'>x</a>%{x}"
    variants = tuple(replace(one, name=hostile) if one.name == "loo-loss" else one for one in sweep.plan.variants)
    changed(sweep, variants=variants, published={}).write_plan()
    curves, chances = figures_of(open_page(monkeypatch, tmp_path, "forecast"))
    assert html.escape(elided(hostile, WIDE.longest), quote=False) in chances["layout"]["yaxis"]["ticktext"]
    shown = [{**trace, "legendgroup": ""} for trace in (*curves["data"], *chances["data"])]  # groups are not drawn
    assert "<a" not in json.dumps(shown)
    hovers = [trace["hovertemplate"] for trace in curves["data"] if "elsewhere" in trace.get("hovertemplate", "")]
    assert len(hovers) == 2  # fitted and extrapolated
    assert all(hover.count("%{x") == 1 for hover in hovers)  # the number, and not the name


def test_the_backtest_is_made_on_demand(monkeypatch, finished):
    assert len(open_page(monkeypatch, finished.home.path, "forecast").dataframe) == 2
    page = open_page(monkeypatch, finished.home.path, "forecast", backtest="1")
    scores, checks = (one.value for one in page.dataframe[2:])
    expected = backtest_sweep(read_results(finished))
    assert list(scores["mean error"]) == pytest.approx([one.mean_error for one in expected.scores])
    assert len(checks) == len(expected.checks) == 3 * len(expected.scores)


def test_forecasts_are_against_any_variant(monkeypatch, finished):
    page = open_page(monkeypatch, finished.home.path, "forecast", baseline="loo-loss", variant=["scalerl"])
    table = page.dataframe[0].value
    assert list(table["variant"]) == ["scalerl", "loo-loss"]
    assert np.isnan(table["− loo-loss"][1])


def test_another_reading_at_the_same_compute_is_another_forecast(finished):
    """The evaluator's last reading comes after the compute of its run is known."""
    results = read_results(finished)
    assert forecast_sources(read_results(finished)) == forecast_sources(results)
    first, *others = results.variants
    run = first.runs[0]
    assert run.curve is not None
    higher = replace(run, curve=replace(run.curve, score=run.curve.score + 0.01))
    again = replace(results, variants=(replace(first, runs=(higher, *first.runs[1:])), *others))
    assert forecast_sources(again) != forecast_sources(results)
    assert forecast_sources(read_results(changed(finished, reference="loo-loss"))) != forecast_sources(results)
