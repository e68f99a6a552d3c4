"""Forecasts of variants against formulas, roots and normal probabilities; the command and the figure that show them."""

import json

import numpy as np
import pytest
from fixtures_home import BUDGET, make_home, planned_run
from scipy.optimize import brentq
from scipy.special import ndtr
from typer.testing import CliRunner

from ablations.cli import app
from ablations.compare import TAU
from ablations.curve import Curve
from ablations.errors import AblationsError
from ablations.figures import forecast_figure, styles
from ablations.fit import fit_curve
from ablations.forecast.forecasts import (
    ASSUMED,
    SPREAD,
    compute_to_reach,
    cost_of_a_point,
    crossing,
    difference_at,
    leaderboard,
    predict,
)
from ablations.results import read_results


def eq1(C, A=0.61, B=1.92, C_mid=2542.0, R_0=0.3):
    """ScaleRL eq. 1, written as in the paper; C = 0 gives R_0."""
    C = np.asarray(C, dtype=float)
    return np.where(C > 0, R_0 + (A - R_0) / (1 + (C_mid / np.maximum(C, 1e-9)) ** B), R_0)


def fitted(seed=0, *, sd=0.0002, fit_from=0.0, end=8000.0, **parameters):
    """A fit of eq. 1 with little noise, so that answers are those of the formula."""
    compute = np.arange(0, end + 1, 213.0)
    noise = sd * np.random.default_rng(seed).standard_normal(compute.size)
    return fit_curve(Curve(name="f", compute=compute, score=eq1(compute, **parameters) + noise), fit_from=fit_from)


def test_a_prediction_within_the_readings_is_that_of_eq_1():
    fit = fitted(sd=0.004, fit_from=1500)
    found = predict([fit], 6000.0)
    lo, hi = fit.predict_interval(6000.0)
    assert (found.lo, found.hi) == pytest.approx((lo[0], hi[0]), abs=1e-12)
    assert found.lo < found.lo_80 < found.estimate < found.hi_80 < found.hi
    assert found.lo < eq1(6000.0) < found.hi
    assert found.extrapolation == pytest.approx(6000 / 7881)


def test_two_seeds_are_averaged_and_never_pooled():
    fits = [fitted(0, A=0.58), fitted(1, A=0.62)]
    expected = (eq1(6000.0, A=0.58) + eq1(6000.0, A=0.62)) / 2
    found = predict(fits, 6000.0)
    assert found.estimate == pytest.approx(expected, abs=2e-4)
    # How much the two differ says nothing of the mean of these two runs.
    assert found.hi - found.lo < 0.002


def test_from_three_seeds_on_an_interval_is_students_t_of_their_spread():
    scores = np.array([0.59, 0.60, 0.605, 0.62, 0.635])
    fits = [fitted(seed, sd=0.0001, A=A) for seed, A in enumerate(scores)]
    values = eq1(6000.0, A=scores)
    # t_4(.975) = 2.776; the Monte Carlo sd of that quantile over 2000 draws is 5 %.
    margin = 2.776 * values.std(ddof=1) / np.sqrt(5)
    found = predict(fits, 6000.0)
    assert found.hi - found.lo == pytest.approx(2 * margin, rel=0.15)
    assert found.estimate == pytest.approx(values.mean(), abs=0.1 * margin)


def test_a_difference_holds_the_assumed_run_to_run_sd():
    up, down = fitted(0), fitted(1, A=0.58)
    found = difference_at([up], [down], 6000.0)
    assert found.estimate == pytest.approx(float(eq1(6000.0) - eq1(6000.0, A=0.58)), abs=1e-3)
    assert found.hi - found.lo == pytest.approx(2 * 1.96 * TAU * np.sqrt(2), rel=0.1)
    two = difference_at([up, fitted(2)], [down, fitted(3, A=0.58)], 6000.0)
    assert two.hi - two.lo == pytest.approx(2 * 1.96 * TAU, rel=0.1)


def test_compute_to_reach_inverts_eq_1():
    fit = fitted()
    found = compute_to_reach([fit], 0.55)
    # 2542 ((0.55 - 0.3) / (0.61 - 0.55))^(1 / 1.92)
    assert found.estimate == pytest.approx(5345, rel=0.005)
    assert found.lo < 5345 < found.hi
    assert compute_to_reach([fit], 0.9) is None
    assert compute_to_reach([fit], 0.1).estimate == 0


def test_the_cost_of_a_point_is_the_slope_of_eq_1():
    found = cost_of_a_point([fitted()], 4000.0)
    # g = 1 / (1 + (2542 / 4000)^1.92) = 0.70486; slope = 0.31 * 1.92 g (1 - g) / 4000
    assert found.estimate == pytest.approx(323.0, rel=0.01)
    assert found.lo < 323.0 < found.hi


def test_a_point_more_of_a_flat_curve_has_no_price():
    compute = np.arange(0, 8001, 213.0)
    score = 0.4 + 0.003 * np.random.default_rng(0).standard_normal(compute.size)
    found = cost_of_a_point([fit_curve(Curve(name="flat", compute=compute, score=score))], 80_000.0)
    assert found is None or found.hi is None


def test_a_crossing_is_the_root_of_the_difference():
    slow, fast = fitted(0, fit_from=400), fitted(1, A=0.55, C_mid=1500.0, fit_from=400)
    root = brentq(lambda C: float(eq1(C) - eq1(C, A=0.55, C_mid=1500.0)), 1000, 20_000)
    found = crossing([slow], [fast])
    assert found.compute == pytest.approx(root, rel=0.02)
    assert found.lo < root < found.hi
    assert found.probability == 1
    assert found.leads_after
    assert not crossing([fast], [slow]).leads_after


def test_curves_that_stay_apart_do_not_cross():
    found = crossing([fitted(0, fit_from=1500)], [fitted(1, A=0.45, fit_from=1500)])
    assert found.compute is None
    assert found.probability == 0
    assert found.leads_after


def test_the_chance_to_win_is_a_normal_probability_where_fits_are_exact():
    groups = {"b": [fitted(1, A=0.60)], "a": [fitted(0)]}
    ahead = float(eq1(6000.0) - eq1(6000.0, A=0.60))
    first, second = leaderboard(groups, 6000.0)
    # Monte Carlo sd 0.011
    assert first.variant == "a"
    assert first.wins == pytest.approx(ndtr(ahead / (TAU * np.sqrt(2))), abs=0.035)
    assert first.wins + second.wins == pytest.approx(1)
    assert first.is_assumed


def test_the_rule_behind_a_chance_follows_the_number_of_seeds():
    groups = {"two": [fitted(0), fitted(1)], "three": [fitted(2), fitted(3), fitted(4)]}
    assert {chance.variant: chance.rule for chance in leaderboard(groups, 6000.0)} == {"two": ASSUMED, "three": SPREAD}


def test_what_cannot_be_forecast_is_refused():
    with pytest.raises(AblationsError, match="compute is -1; a forecast needs a finite number greater than 0"):
        predict([fitted()], -1.0)
    with pytest.raises(AblationsError, match="needs the fit of at least one seed"):
        compute_to_reach([], 0.5)
    with pytest.raises(AblationsError, match="no variant has a fit"):
        leaderboard({}, 1000.0)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("home")
    make_home(path)
    return path


def run(*arguments):
    result = CliRunner().invoke(app, ["forecast", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_forecasts_to_ten_budgets(home):
    printed = json.loads(run("loo", "--home", home, "--json", "--score", 0.5))
    assert printed["budgets_gpu_hours"] == [BUDGET, 2 * BUDGET, 10 * BUDGET]
    reference, loss, curriculum = printed["variants"]
    assert [one["variant"] for one in printed["variants"]] == ["scalerl", "loo-loss", "loo-curriculum"]
    # R_0 0.31; A, B and C_mid as in fixtures_home: 320 (0.19 / 0.11)^(1 / 1.92) and 480 times as much.
    assert reference["compute_to_reach"]["estimate"] == pytest.approx(425.4, rel=0.05)
    assert curriculum["compute_to_reach"]["estimate"] == pytest.approx(638.1, rel=0.05)
    at_budget = loss["budgets"][0]
    truth = 0.31 + 0.23 / (1 + (320 / BUDGET) ** 1.8)
    assert at_budget["lo"] < truth < at_budget["hi"]
    assert at_budget["difference"]["hi"] < 0
    assert sum(one["budgets"][2]["wins"] for one in printed["variants"]) == pytest.approx(1)
    assert reference["crossing"] is None
    assert reference["budgets"][0]["difference"] is None
    assert printed["reasons"] == []


def test_a_budget_is_in_the_unit_of_the_scale(home):
    assert json.loads(run("loo", "--home", home, "--json", "--budget", 0.5, "--budget", 3))["budgets_gpu_hours"] == [
        1000.0,
        6000.0,
    ]


def test_the_table_says_what_its_numbers_rest_on(home):
    printed = run("loo", "--home", home)
    assert "weighed by AICc" in printed
    assert "assumed run-to-run sd of 0.0075" in printed
    assert "P(wins)" in printed


def test_a_run_without_a_fit_is_named_with_its_reason(tmp_path):
    home, _ = make_home(tmp_path)
    home.run(planned_run("loo-loss", 0).id).metrics.unlink()
    printed = json.loads(run("loo", "--home", tmp_path, "--json"))
    assert [one["variant"] for one in printed["variants"]] == ["scalerl", "loo-curriculum"]
    assert len(printed["reasons"]) == 1
    assert printed["reasons"][0].startswith("loo-loss, seed 0: ")
    assert "No forecast: loo-loss, seed 0: " in run("loo", "--home", tmp_path)


def test_the_command_backtests_every_finished_run(home):
    printed = json.loads(run("loo", "--home", home, "--json", "--backtest"))
    assert [(one["fraction"], one["num_runs"]) for one in printed["scores"]] == [(0.3, 3), (0.5, 3), (0.7, 3)]
    assert len(printed["checks"]) == 9
    # 70 % is 1400 of 2000 GPU-hours, over four times the true C_mid of two variants and nearly three times the third's.
    assert printed["scores"][2]["mean_absolute_error"] < 0.01
    assert sum(one["is_held"] for one in printed["checks"]) >= 8
    assert "95 % intervals that held" in run("loo", "--home", home, "--backtest")


def test_a_backtest_needs_a_finished_run(tmp_path):
    make_home(tmp_path, fraction=0.5, state="running")
    with pytest.raises(AblationsError, match="none of 3 runs has reached its budget of 2000 GPU-hours"):
        run("loo", "--home", tmp_path, "--backtest")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "-1"], "--budget: found -1; must be a number greater than 0"),
        (["--score", "1.5"], r"--score: found 1.5; a pass rate to reach lies in \(0, 1\]"),
        (["--backtest", "--budget", "2"], "have no effect on --backtest"),
    ],
)
def test_options_that_cannot_work_are_refused(home, arguments, said):
    with pytest.raises(AblationsError, match=said):
        run("loo", "--home", home, *arguments)


def test_the_figure_reaches_ten_budgets_and_ranks_the_variants(tmp_path):
    home, plan = make_home(tmp_path)
    results = read_results(home, plan)
    figure = forecast_figure(results, banded=["loo-loss"])
    look = styles(plan)
    dashes = [trace for trace in figure.data if trace.type == "scatter" and trace.line.dash == "dash"]
    assert [(trace.x[0], trace.x[-1]) for trace in dashes] == [pytest.approx((BUDGET, 10 * BUDGET))] * 3
    assert [trace.line.color for trace in dashes] == [look[name].colour for name in look]
    (bars,) = [trace for trace in figure.data if trace.type == "bar"]
    assert [trace.legendgroup for trace in figure.data if trace is not bars and trace.fill == "toself"] == ["loo-loss"]
    assert sum(bars.x) == pytest.approx(1)
    assert list(bars.x) == sorted(bars.x, reverse=True)
    assert bars.y[-1] == "loo-loss"
