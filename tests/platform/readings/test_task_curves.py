"""Curves of one task of a mix, of all, and of downstream evaluations."""

import json

import numpy as np
import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.readings.task_curves import curve_of, measured_tasks, with_task

RATES = {"math": (0.61, 300.0), "code": (0.42, 600.0), "all": (0.55, 400.0), "aime": (0.35, 500.0)}
"""A and C_mid of each; B is 1.8 and R_0 is 0.1."""


def rows_at(compute, rng):
    """The rows of one evaluation of a mix of math and code, with aime measured beside it."""
    for task, (A, C_mid) in RATES.items():
        rate = 0.1 + (A - 0.1) / (1 + (C_mid / compute) ** 1.8) if compute else 0.1
        row = {
            "kind": "downstream" if task == "aime" else "eval",
            "step": round(compute),
            "compute_gpu_hours": float(compute),
            "task": task,
            "pass_rate": rng.binomial(16000, rate) / 16000,
            "num_prompts": 1000,
            "num_samples": 16000,
            "wall_s": 1.0,
        }
        yield row | ({"share": 0.5} if task in ("math", "code") else {})


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep whose every run trains on a mix."""
    mixed = make_home(tmp_path_factory.mktemp("home"))
    for number, run in enumerate(mixed.plan.runs):
        rng = np.random.default_rng(number)
        rows = [row for compute in range(0, 2001, 50) for row in rows_at(compute, rng)]
        mixed.run(run.id).metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return mixed


def test_each_task_has_a_curve_of_its_own_and_the_default_is_the_mix():
    rng = np.random.default_rng(0)
    rows = [row for compute in (0, 50, 100) for row in rows_at(compute, rng)]
    for task in RATES:
        assert curve_of(rows, "c", task).score.tolist() == [row["pass_rate"] for row in rows if row["task"] == task]
    assert curve_of(rows, "c").score.tolist() == curve_of(rows, "c", "all").score.tolist()


def test_counts_by_prompt_give_the_variance_of_a_task_and_of_a_mix():
    # math: 0, 1 and 2 of 2 right, p_i (1 - p_i) = 0, 1/2, 0, over 6 answers; code: 3 and 1 of 4, 1/4 each, over 8.
    counted = {"math": "2:012", "code": "4:31", "aime": "2:11"}
    answers = {"math": 2 / 2 / 36, "code": 2 * 4 / 4 / 64, "aime": 4 / 2 / 16}
    prompts = {"math": (1 / 4 - 1 / 12) / 3, "code": (1 / 8 - 1 / 16) / 2, "aime": 0.0}
    rows = [row for compute in (0, 50) for row in rows_at(compute, np.random.default_rng(0))]
    rows[4:] = [row | ({"prompt_counts": counted[row["task"]]} if row["task"] in counted else {}) for row in rows[4:]]
    for task in counted:
        curve = curve_of(rows, "c", task)
        assert curve.answer_variance == pytest.approx([np.nan, answers[task]], nan_ok=True)
        assert curve.prompt_variance == pytest.approx([np.nan, prompts[task]], nan_ok=True)
    whole = curve_of(rows, "c")
    assert whole.answer_variance == pytest.approx([np.nan, (answers["math"] + answers["code"]) / 4], nan_ok=True)
    assert whole.prompt_variance == pytest.approx([np.nan, (prompts["math"] + prompts["code"]) / 4], nan_ok=True)
    first = whole.score[0] * (1 - whole.score[0]) / 16000
    assert whole.sampling_variance == pytest.approx([first, whole.answer_variance[1]])


def test_a_single_task_has_its_own_counts():
    row = {**next(rows_at(0, np.random.default_rng(0))), "prompt_counts": "2:0121"}
    del row["share"]
    assert curve_of([row], "c").answer_variance == pytest.approx([4 / 2 / 64])
    with pytest.raises(AblationsError, match="prompt_counts of the eval row at step 0: found '2:013'"):
        curve_of([row | {"prompt_counts": "2:013"}], "c")


def test_many_evaluations_have_the_variances_of_their_counts_in_order():
    rng = np.random.default_rng(1)
    plain = {**next(rows_at(0, rng))}
    del plain["share"]
    right = rng.integers(0, 5, (150, 20))
    texts = ["4:" + "".join(map(str, counts)) for counts in right]
    texts[70] = "4:" + "1" * 20 + ":" + "4" * 19 + "3"  # its last prompt has an answer fewer
    rows = [plain | {"compute_gpu_hours": float(n), "prompt_counts": text} for n, text in enumerate(texts)]
    curve = curve_of(rows, "c")
    shares = right / 4
    answers = (shares * (1 - shares) * 4 / 3).sum(axis=1) * 4 / 80**2
    prompts = (shares.var(axis=1, ddof=1) - (shares * (1 - shares) / 3).mean(axis=1)).clip(0) / 20
    others = np.arange(150) != 70
    assert curve.answer_variance[others] == pytest.approx(answers[others])
    assert curve.prompt_variance[others] == pytest.approx(prompts[others])
    assert curve.answer_variance[70] == pytest.approx((19 * 3 / 3 + 2 / 2) / 79**2)


def test_an_unknown_task_is_answered_with_the_valid_ones(sweep):
    with pytest.raises(
        AblationsError, match=r"--task: .*'maths'; did you mean 'math'\? tasks are: math, code, all, aime"
    ):
        with_task(sweep, "maths")
    rows = rows_at(0, np.random.default_rng(0))
    with pytest.raises(AblationsError, match="no task 'maths' was measured; did you mean 'math'"):
        curve_of(rows, "c", "maths")


def test_readings_that_come_after_later_steps_are_read_with_the_compute_of_when_they_were_due(tmp_path):
    late, rng = make_home(tmp_path), np.random.default_rng(0)
    first, second = (list(rows_at(compute, rng)) for compute in (0, 50))
    steps = [{"kind": "train", "step": step, "compute_gpu_hours": float(step)} for step in (20, 50, 70)]
    log = late.run(late.plan.runs[0].id).metrics
    log.write_text("".join(json.dumps(row) + "\n" for row in [*steps[:2], *first, steps[2], *second]))
    for run in late.plan.runs[1:]:
        late.run(run.id).metrics.unlink()
    assert measured_tasks(late) == list(RATES)
    (read,) = read_results(late).variants[0].runs
    assert read.curve is not None
    assert read.curve.compute.tolist() == [0.0, 50.0]
    assert read.cost_gpu_hours == 70.0


@pytest.mark.parametrize("task", [None, *RATES])
def test_a_plan_with_a_task_is_fitted_to_its_curves(sweep, task):
    (fit,) = read_results(with_task(sweep, task)).variant("scalerl").fits
    A, C_mid = RATES[task or "all"]
    assert pytest.approx(A, abs=0.02) == fit.eq1_A
    assert fit.C_mid == pytest.approx(C_mid, rel=0.12)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output
