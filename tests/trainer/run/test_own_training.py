"""A run with a function of the user's own trains from its own copy of the function's files."""

import json
import shutil

import pytest
from trainer.own_functions import CURRICULUM, custom_task, own_function, own_loss, written
from trainer.runs import new_run, rows_of
from trainer.tiny import tiny_recipe

from scalerl.errors import CannotResume
from scalerl.recipe.own_function import OwnFailed
from scalerl.run.train import train

LEARNER = {
    "model": {"hidden": 32, "layers": 2, "mlp": 32},
    "warm_start": {"steps": 150, "batch": 64, "learning_rate": 5e-3},
}
"""Right half of the time after its warm start, so that there is something to learn."""


def own_recipe(folder, **settings):
    return tiny_recipe(loss=own_loss(folder, **settings).model_dump(mode="json"))


BUILT_IN = {
    "aggregation": """\
from scalerl.objective.aggregation import AggregationOutputs


def mine(given):
    return AggregationOutputs(weight_BT=given.mask_BT / given.mask_BT.sum().clamp(min=1))
""",
    "advantage": """\
import torch
from scalerl.objective.advantages import AdvantageOutputs


def mine(given):
    total = torch.where(given.mask_PG, given.rewards_PG, 0.0).sum(dim=1, keepdim=True)
    mean = total / given.mask_PG.sum(dim=1, keepdim=True)
    return AdvantageOutputs(advantage_PG=torch.where(given.mask_PG, given.rewards_PG - mean, 0.0))
""",
    "zero_variance": """\
from scalerl.objective.trained_groups import GroupOutputs


def mine(given):
    rows = zip(given.rewards_PG.tolist(), given.mask_PG.tolist(), strict=True)
    differ = [len({one for one, there in zip(*row, strict=True) if there}) > 1 for row in rows]
    return GroupOutputs(is_trained_P=given.mask_PG.new_tensor(differ))
""",
    "reward": """\
from scalerl.objective.rewards import RewardOutputs


def mine(given, *, cache):
    if given.outcome != "right":
        return RewardOutputs(reward=-1.0)
    over = (given.max_length - given.length) / (cache * given.max_length) - 1.0
    return RewardOutputs(reward=1.0 + min(0.0, max(-1.0, over)))
""",
}
"""What `token`, `none`, `drop` and `penalty` do, written anew."""


def test_built_in_choices_written_anew_in_files_train_the_same_run_though_the_files_are_gone(tmp_path):
    choices = {"aggregation": "token", "advantage": "none", "length_control": {"type": "penalty", "cache": 0.5}}
    theirs = new_run(tmp_path / "theirs", tiny_recipe(loss={"type": "cispo", "max_ratio": 1.0}, **LEARNER, **choices))
    parameters, files = {"reward": {"cache": 0.5}}, tmp_path / "files"
    own = {
        name: own_function(files, name, body, **parameters.get(name, {})).model_dump(mode="json")
        for name, body in BUILT_IN.items()
    }
    own["loss"] = own_loss(files).model_dump(mode="json")
    mine = new_run(tmp_path / "mine", tiny_recipe(**LEARNER, **own, length_control={"type": "none"}))
    shutil.rmtree(files)
    assert {path.name for path in (mine.own / "my_ideas").iterdir()} >= {f"{name}s.py" for name in BUILT_IN}
    for budget in (0.5, 1.0):  # the second time from a checkpoint
        for folder in (theirs, mine):
            train(folder.path, budget_gpu_hours=budget, warm_starts=tmp_path / "warm_starts")
    assert any(row["kind"] == "train" and row["loss"] for row in rows_of(mine))
    assert rows_of(mine) == rows_of(theirs)


def test_an_edit_after_the_run_was_made_changes_nothing(tmp_path):
    recipe = own_recipe(tmp_path / "files")
    folder = new_run(tmp_path / "run", recipe)
    written(tmp_path / "files", "def mine(given): raise ValueError\n")
    folder.create(recipe, seed=0)
    read, _ = folder.read_recipe()
    assert read.identity(0) == recipe.identity(0)
    assert read.loss.folder == str(tmp_path / "run/own")
    assert "raise ValueError" not in read.loss.file.read_text()


def test_an_edit_between_reading_the_recipe_and_making_the_run_is_refused(tmp_path):
    recipe = own_recipe(tmp_path / "files")
    written(tmp_path / "files", "def mine(given): ...\n")
    with pytest.raises(OwnFailed, match="has changed since this command read it"):
        new_run(tmp_path / "run", recipe)
    assert not (tmp_path / "run/recipe.json").exists()


def test_a_damaged_copy_ends_the_run_with_its_name(tmp_path):
    folder = new_run(tmp_path / "run", own_recipe(tmp_path / "files"))
    (folder.own / "my_ideas/losses.py").write_text("def mine(given): ...\n")
    with pytest.raises(OwnFailed, match=f"{folder.own}/my_ideas/losses.py is missing or has changed"):
        train(folder.path, budget_gpu_hours=1.0, warm_starts=tmp_path / "warm_starts")
    assert "losses.py is missing or has changed" in json.loads((folder.path / "status.json").read_bytes())["message"]


def test_hashes_that_were_edited_are_those_of_another_run(tmp_path):
    recipe = own_recipe(tmp_path / "files")
    folder = new_run(tmp_path / recipe.identity(0), recipe)
    path = folder.path / "recipe.json"
    path.write_text(path.read_text().replace(next(iter(recipe.loss.files.values())), "0" * 64))
    with pytest.raises(CannotResume, match="the file was edited"):
        folder.read_recipe()


def test_a_task_in_a_file_trains_though_the_file_is_gone(tmp_path):
    task = custom_task(tmp_path / "files", parameters={"count": 120}, name="sums").model_dump(mode="json")
    recipe = tiny_recipe(
        model={"tokenizer": "characters"},
        tasks=[task],
        generation={"thinking": 8, "answer": 4},
        length_control={"type": "none"},
    )
    folder = new_run(tmp_path / "run", recipe)
    shutil.rmtree(tmp_path / "files")
    train(folder.path, budget_gpu_hours=0.5, warm_starts=tmp_path / "warm_starts")
    rows = rows_of(folder)
    assert {row["kind"] for row in rows} == {"eval", "train"}
    kept = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    assert {row["task"] for row in kept} == {"sums"}
    assert folder.read_recipe()[0].tasks[0].folder == str(folder.own)


def test_a_curriculum_in_a_file_trains_and_resumes(tmp_path):
    own = own_function(tmp_path / "files", "curriculum", CURRICULUM, floor=0.2).model_dump(mode="json")
    folder = new_run(tmp_path / "run", tiny_recipe(curriculum=own))
    shutil.rmtree(tmp_path / "files")
    for budget in (0.4, 0.8):
        train(folder.path, budget_gpu_hours=budget, warm_starts=tmp_path / "warm_starts")
    steps = [row["step"] for row in rows_of(folder) if row["kind"] == "train"]
    assert steps == list(range(1, len(steps) + 1))
    assert rows_of(folder)[-1]["compute_gpu_hours"] >= 0.8
