"""The supervised start: stops within a step, resumes to the bit, is checked when it is read, and is shared."""

import json
import os
import shutil
import signal
import threading

import numpy as np
import pytest
import torch
from filelock import FileLock
from trainer.tiny import tiny_recipe
from waiting import wait_until

from scalerl.errors import Cancelled, CannotResume, Diverged
from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run import warm_start
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import WALL_FIELDS, read_rows
from scalerl.run.train import train
from scalerl.run.warm_start import Listener, accumulate, load_or_train, pass_tokens, start_key
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

STEPS = 12
RECIPE = tiny_recipe(warm_start={"steps": STEPS, "batch": 8}, checkpoint_every_s=0.0)


@pytest.fixture(autouse=True)
def global_settings_restored():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


class Heard(Listener):
    """Keeps what it hears, and asks to stop at one step."""

    def __init__(self, stop_at=None):
        self.steps, self.texts, self.warnings, self.stop_at = [], [], [], stop_at

    def at_step(self, step, text):
        self.steps.append(step)
        self.texts.append(text)
        if step == self.stop_at:
            raise Cancelled("asked to stop")

    def warn(self, fault):
        self.warnings.append(fault)


def start(folder, listener=None, recipe=RECIPE):
    """The weights of the warm start in `folder`, trained if need be."""
    policy = new_policy(recipe)
    load_or_train(
        policy, all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained, recipe, 0, folder, listener
    )
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


def assert_equal(ours, theirs):
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    torch.use_deterministic_algorithms(True)
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, start(folder)


def finished(folder):
    return folder / start_key(RECIPE, 0)


def partial(folder):
    return folder / f"{start_key(RECIPE, 0)}.partial"


def test_a_warm_start_logs_every_step_and_says_how_far_it_is(tmp_path):
    heard = Heard()
    start(tmp_path, heard)
    rows = list(read_rows(finished(tmp_path) / "warm_start.jsonl"))
    assert [row["step"] for row in rows] == heard.steps == list(range(1, STEPS + 1))
    assert rows[-1].keys() == {"kind", "step", "loss", "grad_norm", "learning_rate"}
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert rows[6]["learning_rate"] == pytest.approx(1e-2 * (1 - 0.9 * 6 / STEPS))
    assert heard.texts[3] == f"warm start: step 4 of {STEPS}, loss {rows[3]['loss']:.4g}"
    assert {path.name for path in tmp_path.iterdir()} == {finished(tmp_path).name, f"{finished(tmp_path).name}.lock"}


@pytest.mark.parametrize("every", [0.0, 3600.0])
def test_a_warm_start_that_is_stopped_resumes_to_the_bit(tmp_path, undisturbed, every):
    recipe = tiny_recipe(warm_start={"steps": STEPS, "batch": 8}, checkpoint_every_s=every)
    for stop_at in (1, 5, STEPS):
        heard = Heard(stop_at)
        with pytest.raises(Cancelled):
            start(tmp_path, heard, recipe)
        assert heard.steps[-1] == stop_at
        assert not finished(tmp_path).exists()
    last = Heard()
    assert_equal(start(tmp_path, last, recipe), undisturbed[1])
    assert last.steps == []
    assert (finished(tmp_path) / "warm_start.jsonl").read_bytes() == (
        finished(undisturbed[0]) / "warm_start.jsonl"
    ).read_bytes()
    assert not partial(tmp_path).exists()


FLIPS = {
    "one bit": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 4]) + content[len(content) // 2 + 1 :]
    ),
    "deleted": lambda _: None,
}


def damage(path, how):
    content = FLIPS[how](path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("how", list(FLIPS))
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "warm_start.jsonl", "SHA256SUMS"])
def test_a_damaged_warm_start_is_named_and_trained_again(tmp_path, undisturbed, name, how):
    shutil.copytree(undisturbed[0], tmp_path / "warm_starts")
    path = finished(tmp_path / "warm_starts") / name
    damage(path, how)
    heard = Heard()
    assert_equal(start(tmp_path / "warm_starts", heard), undisturbed[1])
    (warning,) = heard.warnings
    assert str(path.parent) in warning
    assert name in warning
    assert heard.steps[-1] == STEPS
    assert start(tmp_path / "warm_starts", again := Heard())
    assert (again.warnings, again.steps) == ([], [])


@pytest.mark.parametrize("how", list(FLIPS))
@pytest.mark.parametrize("part", ["state", "tensors", "manifest", "log"])
def test_a_damaged_warm_start_under_way_resumes_from_what_is_whole(tmp_path, undisturbed, part, how):
    with pytest.raises(Cancelled):
        start(tmp_path, Heard(7))
    checkpoint = partial(tmp_path) / "checkpoint"
    manifest = checkpoint / "manifest.json"
    parts = {name: checkpoint / one["file"] for name, one in json.loads(manifest.read_text())["parts"].items()}
    path = {**parts, "manifest": manifest, "log": partial(tmp_path) / "warm_start.jsonl"}[part]
    damage(path, how)
    heard = Heard()
    assert_equal(start(tmp_path, heard), undisturbed[1])
    assert str(path) in heard.warnings[0]
    assert heard.steps[0] == (1 if part == "log" else 7)  # the log's rows of before cannot be had from anywhere else


def test_a_run_that_waits_for_the_warm_start_of_another_hears_of_it_and_can_be_stopped(tmp_path, undisturbed):
    with pytest.raises(Cancelled):
        start(tmp_path, Heard(3))
    other = FileLock(tmp_path / f"{start_key(RECIPE, 0)}.lock", thread_local=False)
    other.acquire()
    waiting = Heard(stop_at=3)
    with pytest.raises(Cancelled):
        start(tmp_path, waiting)
    assert waiting.texts == [f"waiting for the warm start that another run is training: step 3 of {STEPS}"]

    heard, found = Heard(), {}
    thread = threading.Thread(target=lambda: found.update(start(tmp_path, heard)))
    thread.start()
    wait_until(lambda: heard.steps, "the other run to wait")
    other.release()  # as the death of the process that held it does
    thread.join(250)
    assert_equal(found, undisturbed[1])


def test_a_run_stops_within_a_step_of_its_warm_start_and_resumes_to_the_same_numbers(tmp_path, monkeypatch):
    take_step, at = warm_start._Training.take_step, [5]

    def killed(self):
        if self.step + 1 == at[0]:
            os.kill(os.getpid(), signal.SIGTERM)
        return take_step(self)

    monkeypatch.setattr(warm_start._Training, "take_step", killed)
    folders = [RunFolder(tmp_path / name) for name in ("stopped", "whole")]
    for folder in folders:
        folder.create(RECIPE, seed=0)
    with pytest.raises(Cancelled):
        train(folders[0].path, budget_gpu_hours=0.5, warm_starts=tmp_path / "a")
    status = folders[0].read_status()
    assert (status.state, status.message, status.step, status.warm_start_step) == ("cancelled", "asked to stop", 0, 5)
    at[0] = 0
    train(folders[0].path, budget_gpu_hours=0.5, warm_starts=tmp_path / "a")
    train(folders[1].path, budget_gpu_hours=0.5, warm_starts=tmp_path / "b")
    rows = [[{**row, **dict.fromkeys(WALL_FIELDS)} for row in read_rows(folder.metrics)] for folder in folders]
    assert rows[0] == rows[1]
    assert folders[0].read_status().warm_start_step == STEPS


def test_a_run_whose_warm_start_is_another_one_now_is_refused(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(RECIPE, seed=0)
    train(folder.path, budget_gpu_hours=0.5, warm_starts=tmp_path)
    other = tiny_recipe(warm_start={"steps": STEPS + 1, "batch": 8})
    start(tmp_path, recipe=other)
    shutil.rmtree(finished(tmp_path))
    (tmp_path / start_key(other, 0)).rename(finished(tmp_path))
    with pytest.raises(CannotResume, match=f"{finished(tmp_path)} is not the model that the run started from"):
        train(folder.path, budget_gpu_hours=1.0, warm_starts=tmp_path)


@pytest.mark.parametrize("model", [{}, {"type": "moe", "experts": 4, "experts_per_token": 2}])
@pytest.mark.parametrize("max_tokens", [1, 40])
def test_passes_add_up_to_the_gradient_of_the_whole_batch(model, max_tokens):
    sizes = {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16}
    recipe = ResolvedRecipe.model_validate({**RECIPE.model_dump(), "model": {**sizes, **model}})
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained
    policy = new_policy(recipe)
    policy.init_weights(torch.Generator().manual_seed(0))
    tokens, mask = warm_start.demonstration_batch(task, np.random.default_rng(0), 8, 0.1)
    found = []
    for limit in (10**6, max_tokens):
        policy.zero_grad()
        loss = accumulate(policy, tokens, mask, router_loss=0.1, max_tokens=limit)
        found.append(
            (loss, {name: one.grad.clone() for name, one in policy.named_parameters() if one.grad is not None})
        )
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for name, gradient in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], gradient, rtol=1e-4, atol=1e-5)


def test_small_models_take_one_pass_and_pretrained_ones_the_micro_batches_of_the_recipe():
    assert pass_tokens(tiny_recipe(optimiser={"micro_batch_tokens": 64})) == 8192
    assert pass_tokens(tiny_recipe(optimiser={"micro_batch_tokens": 9000})) == 9000
    keys = [start_key(tiny_recipe(optimiser={"micro_batch_tokens": tokens}), 0) for tokens in (64, 2048, 9000)]
    assert keys[0] == keys[1] != keys[2]


def test_a_warm_start_whose_loss_is_not_finite_ends_with_the_reason(tmp_path):
    recipe = tiny_recipe(warm_start={"steps": 40, "batch": 4})
    hot = recipe.warm_start.model_copy(update={"learning_rate": 1e30})  # which a file may not say
    recipe = recipe.model_copy(update={"warm_start": hot})
    with pytest.raises(Diverged, match=r"warm start: loss .* at step \d+; use a smaller warm_start.learning_rate"):
        start(tmp_path, recipe=recipe)
