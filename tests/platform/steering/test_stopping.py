"""The rules that end runs early: probabilities against worked-out ones, and what is kept of a stopped run."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fixtures_home import BUDGET, eval_row, make_home, make_plan, train_row, write_state
from fixtures_steering import RecordedPool, steered
from scipy.special import ndtr, ndtri

from ablations.answers.repeats import UNKNOWN, CommonSpread
from ablations.answers.run_to_run import RunToRun, run_to_run
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.fit.curve import Curve
from ablations.fit.law_fit import CurveSet, LawFit
from ablations.fit.options import FitSettings
from ablations.fit.readings import Readings
from ablations.fit.result import Fit
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.home.stops import Stopped, read_stops
from ablations.status.progress import run_rows
from ablations.status.table import status_table, summary
from ablations.steering.stopping import (
    StopReason,
    dominated_probability,
    gain_probability,
    probability_below,
    recent_truncation,
    stop_reason,
)
from ablations.study.sweep import Stop

ASSUMED = run_to_run([])
GAIN = Stop(gain_below=0.05, probability=0.9)


NUM_DRAWS = 2000
NOW = 1000.0
COMPUTE = np.arange(100.0, NOW + 1, 100.0)


def drawn(A: float, *, C_mid: float = 100.0, verdict: str = "resolved", sd: float = 0.0) -> Fit:
    """A fit as far as the rules know it: eq. 1 with B = 1 and R_0 = 0, of which every draw has the same shape, read up
    to NOW without noise; A is normal with this sd."""
    A_draws = A + sd * ndtri((np.arange(NUM_DRAWS) + 0.5) / NUM_DRAWS)
    fields = {"B": np.ones(NUM_DRAWS), "C_mid": np.full(NUM_DRAWS, C_mid), "R_0": np.zeros(NUM_DRAWS)}
    score = A * COMPUTE / (COMPUTE + C_mid)
    law = LawFit(
        curve=Curve(name="c", compute=COMPUTE, score=score),
        settings=FitSettings(),
        readings=Readings(compute=COMPUTE, score=score, sampling_variance=0.0, anchors=()),
        draws=CurveSet(A=A_draws, **fields),
    )
    object.__setattr__(law, "verdict", verdict)
    return cast(Fit, law)


def spread_at(rise: float, budget: float) -> float:
    """That of a forecast with the least noise, a quarter wider since no finished run teaches it."""
    k = 3
    return 1.25 * float(np.sqrt((0.45 * rise) ** 2 + 1e-6 * (1 / k + 1.4**2 * np.log(budget / NOW))))


def test_the_gain_probability_is_that_the_forecast_rises_by_less():
    # From 1000 to 3000 a curve with C_mid 1000 rises from A / 2 to 3 A / 4, of which seven tenths are foretold.
    fit = drawn(0.4, C_mid=1000.0)
    expected = ndtr((0.06 - 0.7 * 0.1) / spread_at(0.1, 3000.0))
    assert gain_probability(fit, budget=3000.0, gain_below=0.06) == pytest.approx(expected, abs=1e-3)
    # Beside it the spread of A by 0.04 moves the rise by 0.01.
    wider = np.hypot(spread_at(0.1, 3000.0), 0.01)
    doubted = drawn(0.4, C_mid=1000.0, sd=0.04)
    assert gain_probability(doubted, budget=3000.0, gain_below=0.06) == pytest.approx(ndtr(-0.01 / wider), abs=5e-3)


def test_the_difference_of_two_runs_holds_how_much_runs_of_one_recipe_differ():
    run, one, two, three = (drawn(A, C_mid=1e-6) for A in (0.60, 0.61, 0.60, 0.62))
    # Nothing rises any more: the least noise of 0.001 from 1000 to 2000 on each side, of three runs a third, of which
    # they share 0.4.
    own = spread_at(0.0, 2000.0)

    def probability(reference: list[Fit], spread: RunToRun = ASSUMED) -> float:
        return dominated_probability(run, reference, budget=2000.0, spread=spread)

    assert probability([one]) == pytest.approx(ndtr(0.01 / np.sqrt(2 * 0.0075**2 + 2 * own**2)), abs=0.01)
    of_three = own**2 * (1 + 0.4 + 0.6 / 3)
    expected = ndtr(0.01 / np.sqrt(4 / 3 * 0.0075**2 + of_three))
    assert probability([one, two, three]) == pytest.approx(expected, abs=0.01)
    # Forty seeds that lie 0.03 apart leave no doubt about it: Phi(0.01 / (0.03 sqrt 2)) = Phi(0.235702) = 0.593168.
    measured = RunToRun(within=CommonSpread(tau=0.03, freedom=39.0))
    assert probability([one], measured) == pytest.approx(0.593168, abs=0.01)


def test_draws_of_two_runs_are_taken_as_independent_whatever_their_order():
    # Normal, sd 0.02 each, 0.01 apart: Phi(0.01 / sqrt(2 x 0.02^2 + 2 x 0.0075^2)) = Phi(0.331042) = 0.629694.
    # Paired in order, the two would differ by exactly 0.01 and give 0.8271.
    a = np.sort(np.random.default_rng(3).normal(0.60, 0.02, 2000))
    offsets = ASSUMED.differences([UNKNOWN], [UNKNOWN], 20_000)
    assert probability_below(a, a + 0.01, offsets) == pytest.approx(0.6297, abs=0.012)


def test_truncation_is_the_mean_of_the_last_twenty_steps():
    assert recent_truncation([0.5] * 19) is None
    assert recent_truncation([1.0] * 10 + [0.0] * 15 + [0.2] * 5) == pytest.approx(0.05)


def verdict(stop: Stop, fits: list[Fit], **changes: Any) -> StopReason | None:
    inputs: dict[str, Any] = {"budget": 2000.0, "truncation": None, "reference_fits": [drawn(0.6)], "spread": ASSUMED}
    return stop_reason(stop, fits=fits, **(inputs | changes))


def test_the_gain_rule_ends_a_run_and_says_how_sure_it_was():
    # From 1000 to 2000 a curve with C_mid = 3000 gains 0.6 (0.4 - 0.25) = 0.09, one with C_mid = 100 0.026, of which
    # 0.018 are foretold, give or take 0.012.
    found = verdict(GAIN, [drawn(0.6), drawn(0.6)])
    assert found is not None
    assert (found.rule, found.ends_run) == ("gain", True)
    gain = 0.6 * (2000 / 2100 - 1000 / 1100)
    assert found.value == pytest.approx(ndtr((0.05 - 0.7 * gain) / spread_at(gain, 2000.0)), abs=2e-3)
    assert verdict(GAIN, [drawn(0.6)]) is None
    assert verdict(GAIN, [drawn(0.6, C_mid=3000.0), drawn(0.6)]) is None
    assert verdict(Stop(), [drawn(0.6), drawn(0.6)]) is None


def test_the_dominated_rule_compares_with_the_reference_at_the_full_budget():
    stop = Stop(dominated=0.95)
    found = verdict(stop, [drawn(0.56)])
    assert found is not None
    assert (found.rule, found.ends_run) == ("dominated", True)
    # Foretold are 0.9221 of A on both sides, 0.0369 apart, with the assumed sd of runs and half the rise in doubt.
    foretold, rises = 1000 / 1100 + 0.7 * (2000 / 2100 - 1000 / 1100), 2000 / 2100 - 1000 / 1100
    doubt = np.sqrt(2 * 0.0075**2 + spread_at(0.56 * rises, 2000.0) ** 2 + spread_at(0.6 * rises, 2000.0) ** 2)
    assert found.value == pytest.approx(ndtr(0.04 * foretold / doubt), abs=0.01)
    assert verdict(stop, [drawn(0.59)]) is None
    assert verdict(stop, [drawn(0.56)], reference_fits=[]) is None


def test_the_reference_is_never_ended_by_any_rule():
    stop = Stop(gain_below=0.05, dominated=0.95, collapse="stop")
    flat = [drawn(0.6), drawn(0.6)]
    assert verdict(stop, flat, reference_fits=None) is None
    collapsed = verdict(stop, [drawn(0.6, verdict="collapsed")], reference_fits=None)
    assert collapsed == StopReason(rule="collapse", value=1.0, ends_run=False)
    truncated = verdict(stop, flat, reference_fits=None, truncation=0.3)
    assert truncated == StopReason(rule="truncation", value=0.3, ends_run=False)


@pytest.mark.parametrize(("collapse", "ends_run"), [("stop", True), ("flag", False)])
def test_a_collapse_and_truncated_answers_stop_or_flag_a_run(collapse, ends_run):
    stop = Stop(collapse=collapse)
    assert verdict(stop, [drawn(0.6, verdict="collapsed")]) == StopReason(rule="collapse", value=1.0, ends_run=ends_run)
    assert verdict(stop, [], truncation=0.11) == StopReason(rule="truncation", value=0.11, ends_run=ends_run)
    assert verdict(stop, [], truncation=0.10) is None


def test_a_fit_up_to_a_collapse_predicts_nothing():
    stop = Stop(gain_below=0.05, dominated=0.9)
    collapsed = drawn(0.5, verdict="collapsed")
    assert verdict(stop, [collapsed, collapsed]) == StopReason(rule="collapse", value=1.0, ends_run=False)
    assert verdict(GAIN, [collapsed, drawn(0.6)]) is None


def states(sweep: StartedSweep) -> dict[str, str]:
    return {row.variant: row.state.state for row in run_rows(sweep)}


def test_a_stopped_run_is_recorded_shown_with_its_interval_and_not_started_again(tmp_path):
    home = make_home(tmp_path, fraction=0.9, state="cancelled").home
    steering, sweep = steered(home, Stop(gain_below=0.05, probability=0.9))
    plan = sweep.plan
    reference, loss, _ = (variant.runs[0].id for variant in plan.variants)
    assert steering.begin() == [reference]
    assert states(sweep) == {"scalerl": "cancelled", "loo-loss": "stopped", "loo-curriculum": "stopped"}

    stopped = read_stops(sweep)[loss]
    # 36 evaluations of 50 GPU-hours are 1800; the law rises from 0.5302 there to 0.5318 at 2000.
    assert (stopped.rule, stopped.num_readings, stopped.compute_gpu_hours) == ("gain", 36, 1800.0)
    assert stopped.A_lo is not None
    assert stopped.A_hi is not None
    assert stopped.A_lo < 0.54 < stopped.A_hi
    message = next(row.state.message for row in run_rows(sweep) if row.id == loss)
    assert message.startswith(f"stopped, A in [{stopped.A_lo:.3f}, {stopped.A_hi:.3f}]: gain to 2000 GPU-hours below")
    assert "after 36 evaluations (1800 GPU-hours)" in message
    assert summary(plan, run_rows(sweep)).startswith("2 stopped, 1 cancelled")
    assert len(status_table(sweep, run_rows(sweep)).rows) == 3

    again, _ = steered(home, Stop(gain_below=0.05, probability=0.9))
    assert again.begin() == [reference]
    assert read_stops(sweep)[loss] == stopped


def test_a_run_is_judged_when_an_evaluation_is_new_and_asked_to_stop(tmp_path):
    home = make_home(tmp_path, fraction=0.1, state="running").home
    steering, sweep = steered(home, Stop(gain_below=0.05))
    plan = sweep.plan
    pool, loss = RecordedPool(), plan.variants[1].runs[0].id
    steering.begin()
    assert steering.steer(pool) == []

    rng = np.random.default_rng(4)
    with home.run(loss).metrics.open("a") as file:
        for compute in np.arange(250.0, 1801.0, 50.0).tolist():
            file.write(json.dumps(eval_row(compute, (0.54, 1.80, 320.0), rng)) + "\n")
    assert steering.steer(pool) == []  # its status says nothing of an evaluation yet
    write_state(home, loss, "running", compute=1800.0)
    (said,) = steering.steer(pool)
    assert said.startswith("loo-loss-s0: stopped, A in [0.5")
    assert pool.stopped == [loss]
    assert steering.steer(pool) == []


def test_a_run_that_was_flagged_for_truncation_is_flagged_for_a_later_collapse(tmp_path):
    home = make_home(tmp_path, fraction=0.25, state="cancelled").home
    steering, sweep = steered(home, Stop())
    plan = sweep.plan
    loss, rng = plan.variants[1].runs[0].id, np.random.default_rng(6)
    log = home.run(loss).metrics
    truncated = [train_row(500.0 + step, rng) | {"truncated": 0.17} for step in range(1, 31)]
    log.write_text(log.read_text() + "".join(json.dumps(row) + "\n" for row in truncated))
    steering.begin()
    assert read_stops(sweep)[loss].rule == "truncation"

    fallen = [eval_row(compute, (0.0, 1.0, 1e-9), rng) for compute in np.arange(550.0, 1001.0, 50.0).tolist()]
    log.write_text(log.read_text() + "".join(json.dumps(row) + "\n" for row in fallen))
    write_state(home, loss, "running", compute=1000.0)
    (said,) = steering.steer(RecordedPool())
    assert said.startswith("loo-loss-s0: flagged: the pass rate has collapsed")
    assert read_stops(sweep)[loss].rule == "collapse"


def test_a_broken_log_is_not_judged(tmp_path):
    home = make_home(tmp_path, fraction=0.9, state="cancelled").home
    steering, sweep = steered(home, Stop(gain_below=0.05))
    plan = sweep.plan
    log = home.run(plan.variants[1].runs[0].id).metrics
    log.write_text("garbage\n" + log.read_text())
    assert len(steering.begin()) == 2


STOPPED = Stopped(
    run="81d2f0a95c3b",
    variant="loo-loss",
    seed=0,
    rule="dominated",
    ends_run=True,
    value=0.967,
    compute_gpu_hours=4899.0,
    num_readings=23,
    A_lo=0.5871,
    A_hi=None,
    budget_gpu_hours=BUDGET,
    stop=Stop(dominated=0.95).model_dump(),
)


WRONG = json.dumps({"runs": [asdict(STOPPED) | {"rule": "luck"}]})


@pytest.mark.parametrize("content", ["{", WRONG])
def test_a_broken_file_of_stops_says_what_to_do(tmp_path: Path, content: str):
    sweep = StartedSweep(home=Home(tmp_path), plan=replace(make_plan(), stop=Stop().model_dump()))
    sweep.folder.mkdir(parents=True)
    (sweep.folder / "stopped.json").write_text(content)
    with pytest.raises(AblationsError, match=r"stopped\.json: not a list of stopped runs .* Delete the file"):
        read_stops(sweep)


def test_a_sweep_is_judged_with_the_spread_of_runs_that_its_verdicts_have(tmp_path: Path):
    home = make_home(tmp_path, fraction=0.9, state="cancelled", seeds=(0, 1)).home
    steering, sweep = steered(home, Stop(dominated=0.9), variants=make_plan((0, 1)).variants)
    steering.begin()
    results = read_results(sweep)
    assert results.comparison is not None
    spread = results.comparison.spreads["level"]
    assert spread.freedom == 3
    fits = {variant.name: variant.fits for variant in results.variants}
    (stopped, *_) = [one for one in read_stops(sweep).values() if one.variant == "loo-loss"]
    of_run = fits["loo-loss"][stopped.seed]
    expected = dominated_probability(of_run, fits["scalerl"], budget=BUDGET, spread=spread)
    assert stopped.value == pytest.approx(expected, abs=1e-9)
