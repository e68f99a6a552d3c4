"""Forecasts of variants against formulas, roots and normal probabilities; the command and the figure that show them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from curves import eq1, readings
from fixtures_home import BUDGET, R_0, eval_row, make_home, planned_run
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import t
from typer.testing import CliRunner

from ablations.answers.calibration import Calibration, PastError
from ablations.answers.compare import compare
from ablations.answers.crossings import crossing
from ablations.answers.forecasts import (
    VariantFits,
    compute_to_reach,
    cost_of_a_point,
    difference_at,
    estimated,
    leaderboard,
    predict,
)
from ablations.answers.pass_rate_at import pass_rate_at
from ablations.answers.repeats import CommonSpread
from ablations.answers.run_to_run import ASSUMED_SD, RunToRun, run_to_run
from ablations.cli import app
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve

ASSUMED = run_to_run([])
MEASURED = RunToRun(within=CommonSpread(tau=0.01, freedom=400.0), num_runs=401)


def saturating(seed=0, *, A=0.8, tau=1500.0, sd=0.001):
    """A fit of readings of 0.2 + (A - 0.2) (1 - exp(-C / tau)), which saturate faster than eq. 1 can."""
    compute = np.linspace(0, 8000, 81)
    noise = sd * np.random.default_rng(seed).standard_normal(compute.size)
    return fit_curve(Curve(name="e", compute=compute, score=0.2 - (A - 0.2) * np.expm1(-compute / tau) + noise))


def fitted(seed=0, *, sd=0.0002, fit_from=0.0, end=8000.0, **parameters):
    """A fit of eq. 1 with little noise, so that answers are those of the formula."""
    compute = readings(end=end)
    noise = sd * np.random.default_rng(seed).standard_normal(compute.size)
    return fit_curve(Curve(name="f", compute=compute, score=eq1(compute, **parameters) + noise), fit_from=fit_from)


def of(*fits, variant="v", calibration=Calibration()):  # noqa: B008
    return VariantFits(variant=variant, fits=fits, calibration=calibration)


def test_a_prediction_within_the_readings_is_that_of_eq_1():
    fit = fitted(sd=0.004, fit_from=1500)
    found = predict(of(fit), 6000.0, ASSUMED)
    lo, hi = fit.predict_interval(6000.0)
    assert (found.lo, found.hi) == pytest.approx((lo[0], hi[0]), abs=1e-12)
    assert found.lo < found.lo_80 < found.estimate < found.hi_80 < found.hi
    assert found.lo < eq1(6000.0) < found.hi
    assert found.extrapolation == pytest.approx(6000 / 7881)


def test_two_seeds_are_averaged_and_never_pooled():
    fits = [fitted(0, A=0.58), fitted(1, A=0.62)]
    expected = (eq1(6000.0, A=0.58) + eq1(6000.0, A=0.62)) / 2
    found = predict(of(*fits), 6000.0, MEASURED)
    assert found.estimate == pytest.approx(expected, abs=2e-4)
    # Three degrees of freedom of all runs and one of these two, which lie farther apart than .01.
    apart = float(eq1(6000.0, A=0.62) - eq1(6000.0, A=0.58))
    variance = (3 * 0.01**2 + apart**2 / 2) / 4
    assert found.hi - found.lo == pytest.approx(2 * t(4).ppf(0.975) * np.sqrt(variance / 2), rel=0.05)
    one = predict(of(fits[0]), 6000.0, MEASURED)
    assert one.hi - one.lo < 0.002


def begun(start, seed=0, **parameters):
    """`fitted`, of a run with this start."""
    fit = fitted(seed, **parameters)
    return replace(fit, curve=replace(fit.curve, start=start))


def test_what_runs_have_of_the_start_they_share_is_in_no_chance_to_win():
    within, paired = (
        CommonSpread(tau=float(np.hypot(0.004, 0.03)), freedom=400.0),
        CommonSpread(tau=0.004, freedom=400.0),
    )
    spread = RunToRun(within=within, paired=paired, effects={"one": 0.0}, shared_by={"one": 2})
    ahead = float(eq1(6000.0) - eq1(6000.0, A=0.60))
    for other, sd in (("one", 0.004), ("another", float(np.hypot(0.004, 0.03)))):
        up, down = [begun("one", 0)], [begun(other, 1, A=0.60)]
        first, _ = leaderboard([of(*up, variant="up"), of(*down, variant="down")], 6000.0, spread)
        assert first.wins == pytest.approx(ndtr(ahead / (sd * np.sqrt(2))), abs=0.035)


def test_a_difference_up_to_the_common_compute_is_that_of_the_verdict_to_the_digit():
    groups = {
        name: [begun(f"{seed}", 3 * seed + number, sd=0.004, A=A) for seed in range(3)]
        for number, (name, A) in enumerate((("ref", 0.61), ("new", 0.58), ("third", 0.6)))
    }
    comparison = compare(groups, dict.fromkeys(groups, 1.0), "ref")
    spread = pass_rate_at(7881.0).spread_of(groups.values(), groups["ref"])
    found = difference_at(of(*groups["new"]), of(*groups["ref"]), 7881.0, spread)
    level = comparison.variants[1].answers["level"]
    assert (found.estimate, found.lo, found.hi) == (level.estimate, level.lo, level.hi)
    spread = pass_rate_at(4 * 7881.0).spread_of(groups.values(), groups["ref"])
    beyond = difference_at(of(*groups["new"]), of(*groups["ref"]), 4 * 7881.0, spread)
    truth = float(eq1(4 * 7881.0, A=0.58) - eq1(4 * 7881.0))
    assert beyond.lo < truth < beyond.hi


def test_compute_to_reach_inverts_eq_1():
    fit = fitted()
    found = compute_to_reach(of(fit), 0.55, ASSUMED)
    # 2542 ((0.55 - 0.3) / (0.61 - 0.55))^(1 / 1.92)
    assert found.estimate == pytest.approx(5345, rel=0.005)
    assert found.lo < 5345 < found.hi
    assert compute_to_reach(of(fit), 0.9, ASSUMED) is None
    assert compute_to_reach(of(fit), 0.1, ASSUMED).estimate == 0


def test_the_cost_of_a_point_is_the_slope_of_eq_1():
    found = cost_of_a_point(of(fitted()), 4000.0)
    # g = 1 / (1 + (2542 / 4000)^1.92) = 0.70486; slope = 0.31 * 1.92 g (1 - g) / 4000
    assert found.estimate == pytest.approx(323.0, rel=0.01)
    assert found.lo < 323.0 < found.hi


@pytest.mark.parametrize(("seeds", "spread"), [((0,), ASSUMED), ((0, 1), MEASURED)])
def test_no_forecast_passes_a_ceiling_that_is_known(seeds, spread):
    compute = readings()
    curves = [  # up to .66 at the last reading
        Curve(name="f", compute=compute, score=eq1(compute, A=0.75, C_mid=4000.0) + noise)
        for noise in (0.01 * np.random.default_rng(seed).standard_normal(compute.size) for seed in seeds)
    ]
    free, limited = ([fit_curve(curve, ceiling=ceiling) for curve in curves] for ceiling in (None, 0.72))
    ahead = predict(of(*limited), 500_000.0, spread)
    assert ahead.estimate <= ahead.hi <= 0.72
    assert of(*limited).draws(500_000.0).max() <= 0.72
    assert predict(of(*free), 500_000.0, spread).hi > 0.72


def test_a_crossing_is_the_root_of_the_difference():
    slow, fast = fitted(0, fit_from=400), fitted(1, A=0.55, C_mid=1500.0, fit_from=400)
    root = brentq(lambda C: float(eq1(C) - eq1(C, A=0.55, C_mid=1500.0)), 1000, 20_000)
    found = crossing(of(slow), of(fast), ASSUMED)
    assert found.compute == pytest.approx(root, rel=0.02)
    assert found.lo < root < found.hi
    assert found.probability == 1
    assert (found.leads_after, found.leads) == (1, True)
    back = crossing(of(fast), of(slow), ASSUMED)
    assert (back.leads_after, back.leads) == (0, False)


def test_readings_that_level_off_before_eq_1_does_keep_the_forecast_low():
    fit = saturating(0)
    # 0.2 + 0.6 (1 - exp(-16000 / 1500)) = 0.79999; eq. 1, which cannot bend that fast, says 0.84.
    found = predict(of(fit), 16_000.0, ASSUMED)
    assert np.median(fit.predict_draws(16_000.0)) > 0.83
    assert found.lo < 0.8 < found.hi
    assert found.lo < found.lo_80 < found.estimate < found.hi_80 < found.hi


def test_beyond_the_readings_a_forecast_is_seven_tenths_of_the_rise_of_eq_1():
    fit = fitted()
    found = predict(of(fit), 16_000.0, ASSUMED)
    # Noise of 0.0002: the run stands on its curve, and has lost nothing.
    assert found.estimate == pytest.approx(eq1(7881.0) + 0.7 * (eq1(16_000.0) - eq1(7881.0)), abs=5e-4)
    # 0.45 of the rise is the sd of what is left, and a quarter more where no run has finished.
    assert found.hi - found.lo == pytest.approx(2 * 1.96 * 1.25 * 0.45 * (eq1(16_000.0) - eq1(7881.0)), rel=0.05)


def test_a_curve_has_no_jump_where_its_readings_end():
    calibration = Calibration(
        errors=tuple(PastError(variant="v", run=f"{i}", error=-0.05, carried=0.0, distance=0.69) for i in range(5))
    )
    for seeds in ((0,), (0, 1)):
        prospect = of(*(fitted(seed, sd=0.004) for seed in seeds), calibration=calibration)
        compute = 7881.0 * np.exp(np.linspace(-0.01, 0.4, 83))
        assert np.abs(np.diff(estimated(prospect, compute))).max() < 0.002
        low, high = np.quantile(prospect.draws(compute), (0.025, 0.975), axis=0)
        assert np.abs(np.diff(low)).max() < 0.003
        assert np.abs(np.diff(high)).max() < 0.003


def test_finished_runs_that_ended_lower_shift_a_forecast_and_set_its_interval():
    fit = fitted()
    errors = [-0.06, -0.05, -0.05, -0.05, -0.04, -0.05, -0.04, -0.06]
    calibration = Calibration(
        errors=tuple(
            PastError(variant=f"v{i}", run=f"{i}", error=error, carried=0.0, distance=np.log(2))
            for i, error in enumerate(errors)
        )
    )
    alone, beside = (predict(of(fit, calibration=one), 2 * 7881.0, ASSUMED) for one in (Calibration(), calibration))
    # w = 8 / 12; all = 8 * -0.05 / 12; sqrt(ln 2) = 0.8326. What is left of each error lies about -0.05 + 0.35 / 11.
    shift, left = -0.4 / 12, -0.05 + 0.35 / 11
    assert beside.estimate - alone.estimate == pytest.approx(0.8326 * (shift + 8 / 12 * left), abs=1e-3)
    # A third of the model's own spread, without the quarter, and two thirds of about 0.02.
    assert beside.hi - beside.lo == pytest.approx((alone.hi - alone.lo) / 1.25 / 3 + 8 / 12 * 0.8326 * 0.0218, rel=0.1)


def test_finished_runs_add_no_more_than_the_rest_of_the_rise_of_eq_1():
    fit = fitted()
    errors = tuple(
        PastError(variant=f"v{i}", run=f"{i}", error=0.2, carried=0.2, distance=float(np.log(2))) for i in range(8)
    )
    rise = float(eq1(2 * 7881.0) - eq1(7881.0))
    for is_carried in (False, True):
        found = estimated(of(fit, calibration=Calibration(errors=errors, is_carried=is_carried)), 2 * 7881.0)
        # What is left of each error, 0.2 - 1.4 / 11, has a weight of 8 / 12.
        left = 8 / 12 * np.sqrt(np.log(2)) * (0.2 - 1.4 / 11)
        stands = fit.readings.score[-3:].mean() if is_carried else eq1(7881.0)
        assert found[0] == pytest.approx(stands + rise + left, abs=1e-3)


@pytest.mark.parametrize("times", [1.1, 1.4, 100.0])
def test_an_estimate_never_contradicts_its_interval(times):
    for fit in (saturating(0), saturating(1, sd=0.004), fitted(0, sd=0.004, fit_from=1500), fitted(1, sd=0.004)):
        found, cost = predict(of(fit), times * 7881.0, ASSUMED), cost_of_a_point(of(fit), times * 7881.0)
        assert found.lo <= found.lo_80 <= found.estimate <= found.hi_80 <= found.hi
        assert cost is None or (cost.lo <= cost.estimate and (cost.hi is None or cost.estimate <= cost.hi))


def test_the_chance_to_win_is_a_normal_probability_where_fits_are_exact():
    groups = [of(fitted(1, A=0.60), variant="b"), of(fitted(0), variant="a")]
    ahead = float(eq1(6000.0) - eq1(6000.0, A=0.60))
    first, second = leaderboard(groups, 6000.0, ASSUMED)
    # Monte Carlo sd 0.011
    assert first.variant == "a"
    assert first.wins == pytest.approx(ndtr(ahead / (ASSUMED_SD * np.sqrt(2))), abs=0.035)
    assert first.wins + second.wins == pytest.approx(1)
    assert first.rule == "a run-to-run sd of 0.0075, assumed"


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
    assert loss["crossing"]["leads_after"] < 0.05
    assert (printed["finished_runs"], printed["is_carried"]) == (3, False)
    assert reference["budgets"][0]["difference"] is None
    assert printed["reasons"] == []


def test_a_run_that_does_not_rise_is_forecast_to_stay_where_it_stands(tmp_path):
    home = make_home(tmp_path, seeds=(0, 1)).home
    flat = planned_run("loo-loss", 1)
    rng = np.random.default_rng(0)
    rows = [eval_row(compute, (R_0, 1.8, 320.0), rng) for compute in np.arange(0, BUDGET + 1, 50).tolist()]
    home.run(flat.id).metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = json.loads(run("loo", "--home", tmp_path, "--json"))
    assert [one["variant"] for one in printed["variants"]] == ["scalerl", "loo-loss", "loo-curriculum"]
    assert printed["reasons"] == []
    # The mean of a seed that ends at 0.31 + 0.23 / (1 + (320 / 4000)^1.8) = 0.5376, and one that stays at 0.31.
    at_twice = printed["variants"][1]["budgets"][1]
    assert at_twice["lo"] < (0.5376 + R_0) / 2 < at_twice["hi"]
    assert at_twice["estimate"] == pytest.approx((0.5376 + R_0) / 2, abs=0.02)


@pytest.mark.slow
def test_the_command_backtests_every_finished_run(home):
    printed = json.loads(run("loo", "--home", home, "--json", "--backtest"))
    assert [(one["fraction"], one["num_runs"]) for one in printed["scores"]] == [(0.3, 3), (0.5, 3), (0.7, 3)]
    assert len(printed["checks"]) == 9
    assert printed["scores"][1]["skill"] > 0
    # 70 % is 1400 of 2000 GPU-hours, over four times the true C_mid of two variants and nearly three times the third's.
    assert printed["scores"][2]["mean_absolute_error"] < 0.01
    assert sum(one["is_held"] for one in printed["checks"]) >= 8
    assert "95 % intervals that held" in run("loo", "--home", home, "--backtest")
