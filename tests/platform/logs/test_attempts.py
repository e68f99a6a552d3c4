"""What a resumed run overwrites is in no curve, and rows that only come late, twice or from several writers stay."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from imported import study_of_logs
from log_forms import FILES
from places import REPOSITORY
from resumed_logs import MLFLOW, ON_TIME, outcome, read_files, read_mlflow
from resumed_runs import resumed_run

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning

EACH = 16
LEAST_EQUAL = {"W&B parts": 0.5, "TensorBoard, folders": 0.5}
"""Share of the logs that are read. Parts of which a later one begins at the start are refused."""


@pytest.mark.parametrize("form", [*FILES, MLFLOW])
def test_no_value_of_a_lost_attempt_is_in_the_curve_of_a_generated_log(form, tmp_path, empty_store):
    store = shutil.copy(empty_store, tmp_path)
    if form.startswith("TensorBoard"):
        pytest.importorskip("tensorboard", reason="TensorBoard is an extra: pip install tensorboard")
    if form.startswith("W&B parts"):
        pytest.importorskip("wandb", reason="W&B is an extra: pip install wandb")
    found = Counter()
    for number in range(EACH):
        run = resumed_run(np.random.default_rng([7, number, len(form)]), may_be_late=form not in ON_TIME)
        (folder := tmp_path / str(number)).mkdir()
        if form == MLFLOW:
            said = outcome(run, lambda run=run, name=str(number): read_mlflow(run, f"sqlite:///{store}", name))
        else:
            said = outcome(run, lambda run=run, folder=folder: read_files(form, run, folder))
        found[said.partition(":")[0]] += 1
    assert found.keys() <= {"equal", "refused", "fewer readings"}
    assert found["equal"] >= LEAST_EQUAL.get(form, 0.9) * EACH


def test_no_recorded_log_has_a_value_of_a_lost_attempt_in_its_curve():
    recorded = json.loads((REPOSITORY / "benchmarks" / "results" / "resumed_logs.json").read_text())
    assert recorded["outcomes"].keys() == {"equal", "refused", "fewer readings"}
    assert recorded["outcomes"]["equal"] >= 0.9 * recorded["logs"]


def curve_of(tmp_path, rows, *, score="acc", compute="cumsum(t)", **meaning):
    (path := tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = study_of_logs([path], LogMeaning(score=score, compute=compute, **meaning)).runs
    assert run.curve is not None
    assert run.curve.step is not None
    return {int(step): score for step, score in zip(run.curve.step, run.curve.score, strict=True)}, run.warnings


def trained(*steps, **more):
    return [{"step": step, "t": 1.0, "loss": 0.5} | more for step in steps]


def scored(*steps, more=0.0):
    return [{"step": step, "acc": score(step) + more} for step in steps]


def score(step):
    return step / 100


def kept(*steps):
    return {step: score(step) for step in steps}


def in_order(*steps, late=0, every=5):
    """Rows of training, each evaluation `late` steps after its own."""
    return [
        row
        for step in steps
        for row in trained(step) + scored(*[step - late] * (step > late and (step - late) % every == 0))
    ]


FIVES = (5, 10, 15, 20)


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        # Evaluations that come late, and two that come in another order.
        (in_order(*range(1, 24), late=3), FIVES),
        (trained(*range(1, 14)) + scored(5) + trained(14, 15) + scored(15, 10) + trained(*range(16, 21)) + scored(20),
         FIVES),
        # Rows of training a little out of order, as from several machines.
        ([row for n in range(0, 20, 2) for row in trained(n + 2, n + 1)] + scored(*FIVES), FIVES),
        # Two ranks that log each step, at the same time and one after the other; evaluations of the first alone.
        ([row for step in range(1, 21) for row in 2 * trained(step) + scored(*[step] * (step % 5 == 0))], FIVES),
        ([row for step in range(1, 21) for row in trained(step) + scored(*[step] * (step % 5 == 0))
          + trained(*[step - 2] * (step > 2))], FIVES),
        ([row for first in (1, 6, 11, 16) for row in trained(*range(first, first + 5)) + scored(first + 4)
          + trained(*range(first, first + 5))], FIVES),
        # The best step is tested at the end, under another name; the last one is evaluated again, with the same score.
        ([*in_order(*range(1, 21)), {"step": 10, "test/acc": 0.9}, {"step": 20, "acc": 0.2, "hours": 7}], FIVES),
        # All checkpoints are evaluated after training, and then on another data set.
        (trained(*range(1, 21)) + scored(*FIVES), FIVES),
        (trained(*range(1, 21)) + scored(*FIVES) + [{"step": step, "other": 0.1} for step in FIVES], FIVES),
        (trained(*range(1, 21)) + scored(*range(2, 21, 2)) + [{"step": step, "other": 0.1} for step in range(2, 21, 2)],
         range(2, 21, 2)),
        # A writer of evaluation logs its own loss as well, and training is logged at every tenth step only.
        ([row for step in range(5, 41, 5) for row in trained(*[step] * (step % 10 == 0)) + scored(step)],
         range(5, 41, 5)),
        # Epochs and times are in rows of both kinds.
        ([row | {"epoch": row["step"] / 10, "time": 1.7e9 + number}
          for number, row in enumerate(in_order(*range(1, 24), late=3))], FIVES),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compute", ["cumsum(t)", "step"])
def test_late_rows_and_several_writers_are_no_attempts(tmp_path, rows, steps, compute):
    if compute == "cumsum(t)" and rows[1]["step"] == 10:
        compute = "step"  # the time of nine steps in ten is missing
    found, said = curve_of(tmp_path, rows, compute=compute)
    assert found == kept(*steps)
    assert not any("attempt" in one for one in said)


def without_a_resume(draw):
    """Rows of a run that was never resumed: late evaluations in any order, steps in some disorder, several writers."""
    last, every, of_training = (int(draw.choice(one)) for one in (range(20, 80), [1, 2, 3, 5, 7, 10], [1, 1, 2, 5, 10]))
    late, disorder, lag = (float(draw.choice(one)) for one in ([0, 2, 4, 12], [0, 0, 1.5], [0, 1, 3]))
    shared, writers = {"epoch": 1.0} if draw.random() < 0.5 else {}, int(draw.choice([1, 1, 2]))
    timed = [
        (step + draw.random() * disorder + writer * lag, {"step": step, "loss": 0.5, **shared})
        for step in range(of_training, last + 1, of_training)
        for writer in range(writers)
    ]
    steps = range(0, last + 1, every)
    timed += [(step + 0.5 + draw.random() * late, {"step": step, "acc": score(step), **shared}) for step in steps]
    rows = [row for _, row in sorted(timed, key=lambda one: one[0])]
    return [*rows, *[{"step": last, "test/acc": 0.9, **shared}] * int(draw.random() < 0.3)], steps


def test_no_attempt_is_found_in_generated_logs_without_a_resume(tmp_path):
    for number in range(100):
        rows, steps = without_a_resume(np.random.default_rng([8, number]))
        found, said = curve_of(tmp_path, rows, compute="step")
        assert (found, [one for one in said if "attempt" in one]) == (kept(*steps), []), number


LOST = 0.5
"""What a lost score is higher."""


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        # Only the step at which the run was killed is trained again; its evaluation is not.
        (trained(*range(1, 24)) + scored(10, 20) + scored(23, more=LOST) + trained(*range(23, 31)) + scored(30),
         (10, 20, 30)),
        # The checkpoint's own step is evaluated before training goes on, and so is one between rows of training.
        (in_order(*range(1, 14)) + scored(13, more=LOST) + scored(10) + in_order(*range(11, 21)), FIVES),
        ([row for s in range(5, 26, 5) for row in scored(s, more=LOST * (s > 10)) + trained(*[s] * (s % 10 == 0))]
         + [row for s in range(12, 42, 5) for row in trained(*[s + 3] * (s % 10 == 7)) + scored(s)],
         (5, 10, 12, 17, 22, 27, 32, 37)),
        # Scores alone, of other steps than before.
        (scored(5, 10) + scored(15, 20, more=LOST) + scored(12, 17, 22, 27), (5, 10, 12, 17, 22, 27)),
        (scored(10) + scored(20, 30, more=LOST) + scored(15, 25, 35), (10, 15, 25, 35)),
        # An evaluation of the lost attempt ends when the next one is under way.
        (in_order(*range(1, 22), late=3) + trained(11, 12) + scored(20, more=LOST) + in_order(*range(13, 31), late=3),
         (5, 10, 15, 20, 25)),
        # Killed before the first evaluation, and twice more from one checkpoint.
        (trained(*range(1, 5), *range(3, 7)) + scored(6, more=LOST) + trained(*range(5, 8), *range(5, 21))
         + scored(10, 20), (10, 20)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compute", ["cumsum(t)", "step"])
def test_what_a_resume_overwrites_is_left_out(tmp_path, rows, steps, compute):
    if not any("t" in row for row in rows) or sum("t" in row for row in rows) < 10:
        compute = "step"
    found, said = curve_of(tmp_path, rows, compute=compute)
    assert found == kept(*steps)
    assert any(one.startswith("attempt 1 reached step") for one in said)


def test_the_times_of_a_lost_attempt_are_not_counted_and_its_rows_are_said(tmp_path):
    rows = trained(*range(1, 24), t=60.0) + trained(*range(13, 31)) + scored(30)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = study_of_logs([tmp_path / "a.jsonl"], LogMeaning(score="acc", compute="cumsum(t)")).runs
    assert run.curve is not None
    assert run.curve.compute.tolist() == [12 * 60 + 18]
    assert run.warnings == (
        "attempt 1 reached step 23 and attempt 2 goes on at 13, so 11 rows after step 12 of attempts before it are "
        "left out",
    )


def test_of_many_attempts_the_first_are_told_one_by_one(tmp_path):
    rows = [row for first in range(1, 30, 4) for row in trained(*range(first, first + 6))] + scored(30)
    _, said = curve_of(tmp_path, rows)
    assert [one[:33] for one in said] == [
        "attempt 1 reached step 6 and atte",
        "attempt 2 reached step 10 and att",
        "attempt 3 reached step 14 and att",
        "4 more attempts, likewise",
    ]


TWO = (
    "acc has two values at {} of {} steps, .* and no step goes back as after a resume: training and evaluation, or two"
)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # Accuracy of training at every step and of evaluation at every fifth, in both orders, in one shape and in two.
        ([row for s in range(1, 21) for row in trained(s, acc=0.9) + scored(*[s] * (s % 5 == 0))], (4, 20)),
        ([row for s in range(1, 21) for row in scored(*[s] * (s % 5 == 0)) + trained(s, acc=0.9)], (4, 20)),
        ([row for s in range(1, 21) for row in scored(s, more=0.3) + trained(s) + scored(*[s] * (s % 10 == 0))],
         (2, 20)),
        ([row for s in range(1, 24) for row in scored(s, more=0.3) + scored(*[s] * (s % 5 == 0))], (4, 23)),
        # A test at the last step, and a second look at the best.
        (in_order(*range(1, 21)) + scored(20, more=0.1), (1, 4)),
        (in_order(*range(1, 21)) + scored(15, more=0.1), (1, 4)),
    ],
)  # fmt: skip
def test_two_scores_of_a_step_without_a_resume_are_refused(tmp_path, rows, said):
    with pytest.raises(AblationsError, match=TWO.format(*said)):
        curve_of(tmp_path, rows, compute="cumsum(t)" if any("t" in row for row in rows) else "step")


@pytest.mark.parametrize(
    "rows",
    [
        # Killed at its checkpoint, or trained for longer; killed once more before training went on; killed later first.
        in_order(*range(1, 11)) + scored(10, more=0.1) + in_order(*range(11, 21)),
        in_order(*range(1, 11)) + scored(10, more=0.2) + scored(10, more=0.1) + in_order(*range(11, 21)),
        in_order(*range(1, 14)) + scored(10, more=0.2) + scored(10, more=0.1) + in_order(*range(11, 21)),
    ],
)
def test_of_a_step_that_a_resumed_run_evaluates_again_the_last_score_counts(tmp_path, rows):
    found, said = curve_of(tmp_path, rows, compute="step")
    assert found == kept(*FIVES) | {10: score(10) + 0.1}
    assert "1 step logged again with other values; the last are used" in said


def test_equal_rows_of_several_writers_need_no_note(tmp_path):
    _, said = curve_of(tmp_path, [row for row in in_order(*range(1, 21)) for _ in range(2)])
    assert said == ()
