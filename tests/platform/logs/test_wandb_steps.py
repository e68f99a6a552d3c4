"""Steps of their own that W&B's client writes beside metrics, by `define_metric` and by a rewind."""

import subprocess
import sys

import pytest
from imported import study_of_logs

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning
from ablations.logs.step_axes import axes_of

WRITER = """
import wandb
quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True)
def begin(name, **more):
    return wandb.init(mode="offline", project="p", name=name, id=name, dir=DIR, settings=quiet, **more)
def score(step):
    return {"val/acc": step / 100}
late = begin("late")  # each checkpoint is evaluated three steps later
late.define_metric("val/*", step_metric="eval_iter")
for step in range(1, 41):
    of_eval = {**score(step - 3), "eval_iter": step - 3} if step > 3 and (step - 3) % 5 == 0 else {}
    late.log({"t": 36.0, **of_eval}, step=step)
late.finish()
counted = begin("counted")  # evaluations are counted
counted.define_metric("val/acc", step_metric="evaluation")
for step in range(1, 41):
    counted.log({"t": 36.0, **({**score(step), "evaluation": step // 5} if step % 5 == 0 else {})}, step=step)
counted.finish()
shared = begin("shared")  # training and evaluation are logged one by one, with a step that both share
shared.define_metric("*", step_metric="trainer/step")
for step in range(1, 41):
    shared.log({"t": 36.0, "trainer/step": step})
    if step % 5 == 0:
        shared.log(score(step))
shared.finish()
import time
first = begin("rewound")
for step in range(1, 21):
    of_eval = score(step if step < 12 else 90) if step % 5 == 0 else {}
    first.log({"t": 36.0, **of_eval}, step=step)
first.finish()
time.sleep(1.1)  # folders are told apart by the second
again = wandb.init(mode="offline", project="p", name="rewound", dir=DIR, settings=quiet, resume_from="rewound?_step=12")
for step in range(13, 41):
    again.log({"t": 36.0, **(score(step) if step % 8 == 0 else {})}, step=step)
again.finish()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Offline runs as W&B's client writes them."""
    pytest.importorskip("wandb", reason="W&B is an extra: pip install wandb", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("wandb")
    code = WRITER.replace("DIR", repr(str(folder)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def curve_of(runs, name, **meaning):
    paths = sorted(runs.glob(f"wandb/offline-run-*-{name}"))
    named = LogMeaning(score="val/acc", compute="cumsum(t) / 3600", **meaning)
    (run,) = study_of_logs(paths, named).runs
    assert run.curve is not None
    pairs = zip(run.curve.compute.tolist(), run.curve.score.tolist(), strict=True)
    return {round(100 * hours): score for hours, score in pairs}


def kept(*steps):
    """A step takes a hundredth of an hour and its score is a hundredth of its number."""
    return pytest.approx({step: step / 100 for step in steps})


def test_a_score_counts_at_the_steps_that_define_metric_gives_it(runs):
    assert curve_of(runs, "late") == kept(*range(5, 36, 5))
    assert curve_of(runs, "shared") == kept(*range(5, 41, 5))
    # The user's own choice goes first.
    assert curve_of(runs, "late", step="_step") == pytest.approx({step + 3: step / 100 for step in range(5, 36, 5)})


def test_steps_that_count_something_else_are_refused(runs):
    said = r"val/acc has the steps of 'evaluation' \(define_metric\), which rise by 7 while those of '_step' rise by 35"
    with pytest.raises(AblationsError, match=said):
        curve_of(runs, "counted")
    assert curve_of(runs, "counted", step="_step") == kept(*range(5, 41, 5))


def test_times_in_rows_without_the_step_that_is_asked_for_are_refused(runs):
    with pytest.raises(
        AblationsError, match="t has no step in 33 of 40 rows, so the compute would be too low; name a col"
    ):
        curve_of(runs, "late", step="eval_iter")


def test_a_rewind_overwrites_what_comes_after_its_step(runs):
    assert curve_of(runs, "rewound") == kept(5, 10, 16, 24, 32, 40)


def test_a_whole_name_counts_before_those_with_a_star():
    columns = ["a/x", "a/y", "b", "s1", "s2"]
    assert axes_of(columns, [("a/x", "s2"), ("a/*", "s1"), ("b", "none")]) == {"a/x": "s2", "a/y": "s1"}
