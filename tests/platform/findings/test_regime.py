"""The regime of runs in numbers: from a log written by hand, and as a command shows them."""

import json

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.diagnosis.history import History
from ablations.findings.published_regime import LARGE_RUNS
from ablations.findings.regime import REGIME_MEASURES, RegimeNumber, measured_regime, regime_of
from ablations.findings.results import read_results
from ablations.report.documents.regime import regime_sentence
from ablations.study.resolve import load_resolved


def log_of_steps(num):
    """Entropy falls from 1 to 0 in equal parts; tokens are of lag 0 and 4, one in four of the former."""
    steps = [
        {"step": step, "entropy": 1 - (step - 1) / (num - 1), "mismatch": 0.03, "zero_variance": 0.4, "truncated": 0.02}
        | {"mean_tokens": 5.5, "retired": 2 * step, "staleness": {"0": 10, "4": 30}, "mismatch_lag_0": 0.01}
        for step in range(1, num + 1)
    ]
    steps[0] |= {"staleness": {"0": 30, "4": 10}, "mismatch_lag_0": 0.05, "update": 1e-3}
    evaluations = [{"task": "k_smallest", "pass_rate": rate} for rate in (0.25, 0.5, 0.625)]
    return History(name="scalerl-s0", steps=steps, evaluations=evaluations)


def test_each_number_is_that_of_the_log():
    recipe = load_resolved("scalerl", "smoke", [])  # 1,024 prompts, 16 a step, answers of up to 11 tokens
    found = measured_regime(log_of_steps(100), recipe)
    assert found["passes"] == pytest.approx(100 * 16 / 1024)
    assert found["retired"] == pytest.approx(200 / 1024)
    assert found["staleness"] == pytest.approx((99 * 3 + 1) / 100)
    assert found["log_ratio_lag_0"] == pytest.approx((30 * 0.05 + 99 * 10 * 0.01) / (30 + 99 * 10))
    assert (found["log_ratio"], found["equal_rewards"], found["cut"]) == pytest.approx((0.03, 0.4, 0.02))
    assert found["entropy_start"] == pytest.approx(1 - 2 / 99)  # the mean of the first five steps
    assert found["entropy_end"] == pytest.approx(2 / 99)
    assert found["gain"] == pytest.approx(0.375)
    assert found["length"] == pytest.approx(0.5)
    assert found["update"] == pytest.approx(1e-3)


def test_a_number_is_inside_up_to_twice_the_published_range():
    one = next(one for one in LARGE_RUNS if one.name == "staleness")  # 1 to 4
    inside = [RegimeNumber(published=one, here=here).is_within for here in (0.49, 0.51, 7.9, 8.1, None)]
    assert inside == [False, True, True, False, None]


def test_each_published_number_is_measured_or_fitted():
    assert {one.name for one in LARGE_RUNS} == {*REGIME_MEASURES, "reach", "run_to_run_sd"}
    assert len(LARGE_RUNS) == 14
    assert all(0 < one.low <= one.high and one.source for one in LARGE_RUNS)


def test_the_command_says_what_lies_outside(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    for run in sweep.plan.variants[0].runs:
        path, rows = sweep.run(run.id).metrics, log_of_steps(100).steps
        kept = [line for line in path.read_text().splitlines() if '"train"' not in line]
        kept += [json.dumps({"kind": "train", "compute_gpu_hours": 1.0, **row}) for row in rows]
        path.write_text("".join(f"{line}\n" for line in kept))
    numbers = regime_of(read_results(sweep))
    found = {one.published.name: one for one in numbers}
    assert found["log_ratio"].here == pytest.approx(0.03)
    assert found["update"].is_within is False
    assert found["reach"].here is not None
    assert found["passes"].here is None  # these runs have no recipe that can be read
    said = regime_sentence(numbers, "scalerl")
    assert "update of one step over the weights" in said.partition("Outside:")[2]

    result = CliRunner().invoke(app, ["doctor", sweep.plan.sweep, "--regime", "--json", "--home", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert [one["here"] for one in json.loads(result.output)["regime"]] == [one.here for one in numbers]


def test_runs_without_steps_have_no_regime(tmp_path):
    sweep = make_home(tmp_path)
    for run in sweep.plan.runs:
        lines = sweep.run(run.id).metrics.read_text().splitlines()
        sweep.run(run.id).metrics.write_text("".join(f"{line}\n" for line in lines if '"train"' not in line))
    result = CliRunner().invoke(app, ["doctor", sweep.plan.sweep, "--regime", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "has logged a training step" in str(result.exception)
