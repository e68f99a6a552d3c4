"""Whole runs: they learn to finish, and whatever kills them they end where an undisturbed run ends."""

import contextlib
import gc
import itertools
import math
import signal
import threading
import traceback

import pytest
import torch
from trainer.attempts import attempt, hold
from trainer.runs import PROCESSES, new_run, rows_of
from trainer.tiny import tiny_recipe
from waiting import wait_until

from scalerl.errors import Busy, Cancelled, Diverged
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.run import loop
from scalerl.run.checkpoint import MANIFEST, time_between_saves
from scalerl.run.run_log import MetricsLog, read_rows
from scalerl.run.status import RunStatus
from scalerl.run.train import libraries_uncollected, train
from scalerl.run.warm_start import start_key

SCHEDULES = {
    "pipeline": {"type": "pipeline", "k": 3},
    "ppo_off_policy": {"type": "ppo_off_policy", "k": 3},
}
BUDGET = {"pipeline": 10.0, "ppo_off_policy": 16.0}
"""GPU-hours of some twenty steps and four evaluations."""
LEARNER = {
    "model": {"hidden": 32, "layers": 2, "mlp": 32},
    "warm_start": {"steps": 150, "batch": 64, "learning_rate": 5e-3},
    "optimiser": {"learning_rate": 3e-4},
}
"""Large enough to be right half of the time after its warm start, so that its groups have something to teach."""


def recipe_of(schedule, **changes):
    evaluation = {"every": BUDGET[schedule] / 4, "samples": 2}
    return tiny_recipe(
        **LEARNER, off_policy=SCHEDULES[schedule], evaluation=evaluation, **{"checkpoint_every_s": 0.0, **changes}
    )


def start(folder, budget, warm_starts, moment=None, kill=signal.SIGKILL):
    """Exit code of one attempt in a process of its own."""
    process = PROCESSES.Process(target=attempt, args=(folder.path, budget, warm_starts, moment, kill))
    process.start()
    process.join(250)
    assert process.exitcode is not None, "the attempt hangs"
    return process.exitcode


def weights_of(folder, recipe):
    policy = new_policy(recipe)
    policy.load_weights(folder.model)
    return policy.state_dict()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, warm_starts):
    """For each schedule, a run that nothing happened to: its folder, trained in one go."""
    folders = {}
    for schedule in SCHEDULES:
        folders[schedule] = new_run(tmp_path_factory.mktemp(schedule) / "run", recipe_of(schedule))
        train(folders[schedule].path, budget_gpu_hours=BUDGET[schedule], warm_starts=warm_starts)
    return folders


def assert_same_run(folder, other, schedule):
    assert rows_of(folder) == rows_of(other)
    assert folder.rollouts.read_bytes() == other.rollouts.read_bytes()
    ours, theirs = weights_of(folder, recipe_of(schedule)), weights_of(other, recipe_of(schedule))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


# --- a run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_a_tiny_run_leaves_a_curve_and_says_it_is_done(undisturbed, schedule):
    folder = undisturbed[schedule]
    evaluations = list(read_rows(folder.metrics, kind="eval"))
    steps = list(read_rows(folder.metrics, kind="train"))
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) >= 15
    # Enough happened for the tests below to see it: gradients, lag inside rollouts, skipped prompts, interruptions.
    assert sum(not step["skipped"] for step in steps) > 0.8 * len(steps)
    assert len({lag for step in steps for lag in step["staleness"]}) > 1
    assert any(0 < step["survivors"] < 4 for step in steps)
    assert any(step["interrupted"] > 0 for step in steps)
    assert steps[-1]["retired"] > 0
    assert evaluations[0]["compute_gpu_hours"] == 0
    assert evaluations[0]["weight_version"] == 0
    assert len(evaluations) >= 4
    compute = [row["compute_gpu_hours"] for row in steps]
    assert compute == sorted(compute)
    assert compute[-2] < BUDGET[schedule] <= compute[-1]
    status = folder.read_status()
    assert (status.state, status.step, status.attempt) == ("done", len(steps), 1)
    assert status.compute_gpu_hours == compute[-1]
    assert status.pass_rate == evaluations[-1]["pass_rate"]


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_every_compute_interval_is_measured_once_with_the_weights_of_its_step(undisturbed, schedule):
    rows = list(read_rows(undisturbed[schedule].metrics))
    every, due = BUDGET[schedule] / 4, 0.0
    for row, following in zip(rows, [*rows[1:], {"kind": "end"}], strict=True):
        if row["kind"] == "train":
            assert (following["kind"] == "eval") == (row["compute_gpu_hours"] >= due)
        else:
            assert row["compute_gpu_hours"] >= due
            assert row["weight_version"] == row["step"]
            due = (row["compute_gpu_hours"] // every + 1) * every


@pytest.mark.slow
def test_a_run_learns(tmp_path, warm_starts):
    recipe = tiny_recipe(
        **LEARNER,
        tasks=[
            {
                "type": "k_smallest",
                "symbols": 8,
                "min_length": 2,
                "max_length": 3,
                "train_prompts": 600,
                "validation_prompts": 64,
            }
        ],
        batch={"prompts": 8, "generations": 8},
        evaluation={"every": 20.0, "samples": 8},
    )
    folder = new_run(tmp_path / "run", recipe)
    train(folder.path, budget_gpu_hours=60.0, warm_starts=warm_starts)
    rates = [row["pass_rate"] for row in read_rows(folder.metrics, kind="eval")]
    # 512 answers an evaluation: a pass rate is known to about 0.02.
    assert rates[0] < 0.65
    assert rates[-1] > 0.8


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_every_evaluation_keeps_rollouts_and_those_of_the_batch_before_it(undisturbed, schedule):
    folder = undisturbed[schedule]
    steps = [row["step"] for row in read_rows(folder.metrics, kind="eval")]
    held_out, trained = (list(read_rows(folder.rollouts, kind=kind)) for kind in ("held_out", "trained"))
    assert [row["step"] for row in held_out] == [step for step in steps for _ in range(4)]
    assert [row["step"] for row in trained] == [step for step in steps[1:] for _ in range(4)]
    assert len({row["prompt_id"] for row in held_out}) == 4
    assert all(
        span["version"] == row["step"] for row in held_out for part in ("thinking", "answer") for span in row[part]
    )
    lags = {row["step"] - 1 - span["version"] for row in trained for span in row["thinking"]}
    assert min(lags) >= 0
    assert max(lags) <= SCHEDULES[schedule]["k"]
    assert max(lags) > 0
    assert {row["verdict"] for row in trained} >= {"right", "wrong"}


def test_checkpoints_are_written_as_often_as_the_recipe_says(tmp_path, warm_starts, monkeypatch):
    written = {}
    for seconds in (0.0, 3600.0):
        folder, saved = new_run(tmp_path / str(seconds), recipe_of("pipeline", checkpoint_every_s=seconds)), []
        monkeypatch.setattr(loop, "write_checkpoint", lambda *_, saved=saved: saved.append(1))
        train(folder.path, budget_gpu_hours=1.0, warm_starts=warm_starts)
        written[seconds] = len(saved)
    num_steps = len(list(read_rows(folder.metrics, kind="train")))
    assert num_steps > 1
    assert written == {0.0: num_steps + 1, 3600.0: 1}  # one more where the budget is reached


def test_checkpoints_that_take_long_are_further_apart():
    # 1 s of saving after 19 s of training is 5 % of the time
    assert time_between_saves(15.0, 0.5) == 15.0
    assert time_between_saves(15.0, 1.0) == pytest.approx(19.0)
    assert time_between_saves(15.0, 60.0) == pytest.approx(1140.0)
    assert time_between_saves(0.0, 60.0) == 0.0


def test_a_run_that_is_done_stays_as_it_is(undisturbed, warm_starts):
    folder = undisturbed["pipeline"]
    before = folder.metrics.read_bytes()
    train(folder.path, budget_gpu_hours=BUDGET["pipeline"], warm_starts=warm_starts)
    assert folder.metrics.read_bytes() == before
    assert folder.read_status().state == "done"


def test_a_run_extended_equals_a_run_with_the_larger_budget(tmp_path, warm_starts, undisturbed):
    folder = new_run(tmp_path / "run", recipe_of("pipeline"))
    before = signal.getsignal(signal.SIGTERM)
    for share in (0.5, 0.8, 1.0):
        train(folder.path, budget_gpu_hours=share * BUDGET["pipeline"], warm_starts=warm_starts)
    assert signal.getsignal(signal.SIGTERM) is before
    assert folder.read_status().attempt == 3
    assert_same_run(folder, undisturbed["pipeline"], "pipeline")


# --- killed ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_a_run_killed_at_any_moment_and_resumed_is_the_undisturbed_run(tmp_path, warm_starts, undisturbed, schedule):
    moments = [
        ("eval row", 1),  # before any checkpoint
        ("part written", 2),
        ("checkpoint written", 1),
        ("train row", 2),
        ("part written", 6),
        ("manifest renamed", 2),
        ("checkpoint begun", 2),
        ("previous renamed", 2),
        ("checkpoint renamed", 2),
        ("checkpoint written", 3),
        ("eval row", 2),
    ]
    folder = new_run(tmp_path / "run", recipe_of(schedule))
    for moment in moments:
        assert start(folder, BUDGET[schedule], warm_starts, moment) == -signal.SIGKILL
        assert folder.read_status().state == "running"  # nobody was left to say otherwise
    assert start(folder, BUDGET[schedule], warm_starts) == 0
    status = folder.read_status()
    assert (status.state, status.attempt) == ("done", len(moments) + 1)
    assert_same_run(folder, undisturbed[schedule], schedule)


@pytest.mark.slow
def test_a_run_asked_to_stop_is_cancelled_and_can_be_resumed(tmp_path, warm_starts, undisturbed):
    folder = new_run(tmp_path / "run", recipe_of("pipeline"))
    for moment in (("train row", 3), ("eval row", 2)):
        assert start(folder, BUDGET["pipeline"], warm_starts, moment, signal.SIGTERM) == 7
        status = folder.read_status()
        assert (status.state, status.message) == ("cancelled", "asked to stop")
    assert len(list(read_rows(folder.metrics, kind="train"))) > 3
    assert start(folder, BUDGET["pipeline"], warm_starts) == 0
    assert_same_run(folder, undisturbed["pipeline"], "pipeline")


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_a_run_stops_between_any_two_decode_steps_or_passes_and_loses_nothing(
    tmp_path, warm_starts, undisturbed, monkeypatch, schedule
):
    places = []

    class StopsAt(threading.Event):
        """Asks the run to stop at one of its checks."""

        checks_left = math.inf

        def is_set(self):
            self.checks_left -= 1
            if self.checks_left == 0:
                places.append({frame.name for frame in traceback.extract_stack()})
            return self.checks_left <= 0

    asked = StopsAt()
    monkeypatch.setattr("scalerl.run.train.stop_on_signals", lambda: contextlib.nullcontext(asked))
    folder = new_run(tmp_path / "run", recipe_of(schedule, checkpoint_every_s=3600.0))
    for checks in itertools.chain((1, 2), itertools.repeat(29)):
        asked.checks_left = checks
        try:
            train(folder.path, budget_gpu_hours=BUDGET[schedule], warm_starts=warm_starts)
        except Cancelled:
            assert folder.read_status().state == "cancelled"
            continue
        break
    assert folder.read_status().state == "done"
    assert all(any(name in place for place in places) for name in ("decode", "decode_all", "accumulate"))
    assert_same_run(folder, undisturbed[schedule], schedule)


def test_a_run_that_resumes_on_another_device_says_so(tmp_path, warm_starts, monkeypatch, capsys):
    folder = new_run(tmp_path / "run", recipe_of("pipeline"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(loop, "device_of", lambda recipe: torch.device("meta"))
        train(folder.path, budget_gpu_hours=0.5, warm_starts=warm_starts)
    assert "device: meta" in capsys.readouterr().out
    train(folder.path, budget_gpu_hours=1.0, warm_starts=warm_starts)
    (warning,) = folder.read_status().warnings
    assert "resumes on cpu, but was trained on meta so far" in warning
    assert f"warning: {warning}" in capsys.readouterr().out


def test_a_second_process_on_the_same_run_is_refused(tmp_path, warm_starts):
    folder = new_run(tmp_path / "run", recipe_of("pipeline"))
    folder.write_status(RunStatus(state="running", attempt=1))
    ready = tmp_path / "ready"
    process = PROCESSES.Process(target=hold, args=(folder.lock, ready))
    process.start()
    wait_until(ready.exists, "the other process's lock", limit_s=60.0)
    try:
        with pytest.raises(Busy, match="another process is training this run"):
            train(folder.path, budget_gpu_hours=1.0, warm_starts=warm_starts)
        assert folder.read_status() == RunStatus(state="running", attempt=1)
        assert not folder.metrics.exists()
    finally:
        process.kill()
        process.join()
    train(folder.path, budget_gpu_hours=0.5, warm_starts=warm_starts)
    assert folder.read_status().state == "done"


# --- a full disk ----------------------------------------------------------------------------------------------------


def no_space(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("what", ["checkpoint", "half a row"])
def test_a_full_disk_fails_the_run_and_it_goes_on_when_there_is_space(
    tmp_path, warm_starts, undisturbed, monkeypatch, what
):
    folder = new_run(tmp_path / "run", recipe_of("pipeline"))
    train(folder.path, budget_gpu_hours=2.0, warm_starts=warm_starts)
    checkpoint = (folder.checkpoint / MANIFEST).read_bytes()

    if what == "checkpoint":
        monkeypatch.setattr("scalerl.run.checkpoint.write_atomically", no_space)
    else:

        def half(self, row):
            self._file.write(b'{"kind": "train", "ste')
            self._file.flush()
            no_space()

        monkeypatch.setattr(MetricsLog, "write", half)
    with pytest.raises(OSError, match="No space left"):
        train(folder.path, budget_gpu_hours=BUDGET["pipeline"], warm_starts=warm_starts)
    monkeypatch.undo()
    status = folder.read_status()
    assert status.state == "failed"
    assert "No space left on device" in status.message
    assert (folder.checkpoint / MANIFEST).read_bytes() == checkpoint
    list(read_rows(folder.metrics))  # still readable

    train(folder.path, budget_gpu_hours=BUDGET["pipeline"], warm_starts=warm_starts)
    assert_same_run(folder, undisturbed["pipeline"], "pipeline")


# --- the parts ------------------------------------------------------------------------------------------------------


def test_a_diverging_run_stops_with_the_reason_in_its_status(tmp_path, warm_starts, monkeypatch):
    recipe = recipe_of("pipeline", zero_variance="keep")
    folder = new_run(tmp_path / "run", recipe)
    accumulate = TorchLearner.accumulate

    def poisoned(self, batch, advantage):
        metrics = accumulate(self, batch, advantage)
        for parameter in self.policy.parameters():
            parameter.grad.fill_(float("nan"))
        return metrics

    monkeypatch.setattr(TorchLearner, "accumulate", poisoned)
    with pytest.raises(Diverged):
        train(folder.path, budget_gpu_hours=BUDGET["pipeline"], warm_starts=warm_starts)
    status = folder.read_status()
    assert status.state == "failed"
    assert "5 bad steps in a row" in status.message
    assert [row["skipped"] for row in read_rows(folder.metrics, kind="train")] == [True] * 4


def test_recipes_that_differ_only_in_the_algorithm_share_one_warm_start():
    scalerl, other = recipe_of("pipeline"), recipe_of("ppo_off_policy", logits="bf16", loss={"type": "gspo"})
    assert start_key(scalerl, 0) == start_key(other, 0)
    assert start_key(scalerl, 0) != start_key(scalerl, 1)


def test_objects_of_libraries_are_collected_again_after_a_run():
    with contextlib.suppress(Cancelled), libraries_uncollected():
        assert gc.get_freeze_count() > 50_000
        raise Cancelled
    assert gc.get_freeze_count() == 0
