"""A run is killed and one of its files damaged: it resumes from the last good state or says what is wrong and stops.

It is never done with other numbers than the undisturbed run.
"""

import json
import shutil
import signal

import pytest
import torch
from trainer.attempts import attempt
from trainer.runs import PROCESSES, rows_of
from trainer.tiny import tiny_recipe

from scalerl.errors import CannotResume
from scalerl.model.build import new_policy
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

FIRST, BUDGET = 1.0, 3.0
"""GPU-hours: the first attempt reaches its budget and leaves a model, the second is killed on the way to the larger."""
RECIPE = {"checkpoint_every_s": 0.0, "evaluation": {"every": 1.0, "samples": 2}, "zero_variance": "keep"}


def edited(content):
    """The first digit 1 to 8 becomes the next; where there is none, the first byte changes."""
    place = next((i for i, byte in enumerate(content) if byte in b"12345678"), 0)
    return content[:place] + bytes([content[place] + 1]) + content[place + 1 :]


DAMAGES = {"truncated": lambda content: content[: len(content) // 2], "deleted": lambda _: None, "edited": edited}


def weights_of(folder):
    policy = new_policy(tiny_recipe(**RECIPE))
    policy.load_weights(folder.model)
    return policy.state_dict()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """`undisturbed`, and `killed` with a log that goes beyond its last checkpoint."""
    home = tmp_path_factory.mktemp("home")
    for name in ("undisturbed", "killed"):
        RunFolder(home / name).create(tiny_recipe(**RECIPE), seed=0)
        train(home / name, budget_gpu_hours=FIRST, warm_starts=home / "warm_starts")
    train(home / "undisturbed", budget_gpu_hours=BUDGET, warm_starts=home / "warm_starts")
    steps = [row["step"] for row in read_rows(RunFolder(home / "undisturbed").metrics, "train")]
    first = sum(1 for _ in read_rows(RunFolder(home / "killed").metrics, "train"))
    moment = ("train row", len(steps) - first - 1)
    process = PROCESSES.Process(target=attempt, args=(home / "killed", BUDGET, home / "warm_starts", moment))
    process.start()
    process.join(250)
    assert process.exitcode == -signal.SIGKILL
    return home


FILES = {
    "recipe.json": lambda folder: folder.path / "recipe.json",
    "status.json": lambda folder: folder.path / "status.json",
    "metrics.jsonl": lambda folder: folder.metrics,
    "rollouts.jsonl": lambda folder: folder.rollouts,
    "lock": lambda folder: folder.lock,
    "model/config.json": lambda folder: folder.model / "config.json",
    "model/model.safetensors": lambda folder: folder.model / "model.safetensors",
    "checkpoint/manifest.json": lambda folder: folder.checkpoint / "manifest.json",
    "checkpoint/previous.json": lambda folder: folder.checkpoint / "previous.json",
    **{
        f"{part} of {manifest}": lambda folder, part=part, manifest=manifest: part_of(folder, part, manifest)
        for part in ("state", "tensors", "arrays")
        for manifest in ("manifest.json", "previous.json")
    },
}


def part_of(folder, part, manifest):
    return folder.checkpoint / json.loads((folder.checkpoint / manifest).read_text())["parts"][part]["file"]


def files_in(folder):
    return {path for path in folder.path.rglob("*") if path.is_file()}


def test_every_file_of_a_killed_run_is_damaged_here(home):
    folder = RunFolder(home / "killed")
    assert {path(folder) for path in FILES.values()} == files_in(folder) - {
        path for path in files_in(folder) if path.parent.name == "model" and path.name.startswith("tokenizer")
    } - {folder.model / "generation_config.json"}
    assert folder.read_status().state == "running"
    assert len(rows_of(folder)) > 0


@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("name", list(FILES))
def test_a_damaged_run_resumes_to_the_same_numbers_or_names_the_file_and_the_command(
    tmp_path, home, name, damage, capsys
):
    folder = RunFolder(shutil.copytree(home / "killed", tmp_path / "killed"))
    path = FILES[name](folder)
    before = path.read_bytes()
    content = DAMAGES[damage](before) if before or damage == "deleted" else b"no longer empty"
    path.unlink() if content is None else path.write_bytes(content)
    said = None
    try:
        train(folder.path, budget_gpu_hours=BUDGET, warm_starts=home / "warm_starts")
    except CannotResume as error:
        said = str(error)
    status = folder.read_status()
    if said is not None:
        assert str(path) in said
        assert "`rm -r " in said or "`platform sweep`" in said
        assert (status.state, status.message) == ("failed", said)
        return
    assert rows_of(folder) == rows_of(RunFolder(home / "undisturbed"))
    ours, theirs = weights_of(folder), weights_of(RunFolder(home / "undisturbed"))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    assert (status.state, status.message) == ("done", "")
    is_used = name in ("status.json", "rollouts.jsonl", "checkpoint/manifest.json") or name.endswith(
        " of manifest.json"
    )
    if is_used and (name, damage) != ("status.json", "deleted"):
        assert f"warning: {path}" in capsys.readouterr().out
        assert any(str(path) in text for text in status.warnings)


@pytest.mark.parametrize("content", [b'{"state": "done"', None])
def test_a_finished_run_without_its_status_is_done_again_with_all_of_its_progress(tmp_path, home, content):
    folder = RunFolder(shutil.copytree(home / "undisturbed", tmp_path / "run"))
    before, path = folder.read_status(), folder.path / "status.json"
    path.unlink() if content is None else path.write_bytes(content)
    train(folder.path, budget_gpu_hours=BUDGET, warm_starts=home / "warm_starts")
    after = folder.read_status()
    assert (after.state, after.step, after.pass_rate) == ("done", before.step, before.pass_rate)
    assert after.compute_gpu_hours == before.compute_gpu_hours >= BUDGET
    assert after.wall_s > 0
    assert rows_of(folder) == rows_of(RunFolder(home / "undisturbed"))
