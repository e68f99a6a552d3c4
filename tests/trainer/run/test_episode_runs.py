"""Runs of episodes: whatever kills them they end where an undisturbed run ends."""

import pytest
import torch
from trainer.attempts import attempt
from trainer.own_games import own_task
from trainer.runs import PROCESSES, new_run, rows_of
from trainer.tiny import tiny_recipe

from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.checkpoint import read_checkpoint
from scalerl.run.run_log import read_rows
from scalerl.run.train import train
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer

BUDGET = 4.0
"""GPU-hours of some fifteen steps and four evaluations."""


def recipe_of(latency_s, kv):
    return tiny_recipe(
        model={"hidden": 32, "layers": 2, "heads": 2, "mlp": 32, "tokenizer": "characters"},
        tasks=[
            {
                "type": "episodes",
                "environment": "guess",
                "settings": {"numbers": 8, "rewards": "each guess"},
                "turns": 3,
                "context_tokens": 40,
                "train": 64,
                "validation": 8,
                "latency_s": latency_s,
            }
        ],
        warm_start={"steps": 60, "batch": 32, "learning_rate": 5e-3, "noise": 0.1},
        generation={"thinking": "none", "answer": 3},
        length_control={"type": "none"},
        off_policy={"type": "pipeline", "k": 3},
        kv=kv,
        evaluation={"every": BUDGET / 4, "samples": 2},
        checkpoint_every_s=0.0,
    )


def weights_of(folder, recipe):
    policy = new_policy(recipe)
    policy.load_weights(folder.model)
    return policy.state_dict()


MOMENTS = [("train row", 3), ("checkpoint written", 3), ("part written", 8), ("eval row", 2)]
"""An attempt begins at the last checkpoint of the one before it, and dies at the moment after these."""


@pytest.mark.slow
@pytest.mark.parametrize(("latency_s", "kv"), [(0.0, "keep"), (40.0, "keep"), (40.0, "recompute")])
def test_a_run_killed_in_the_middle_of_episodes_and_resumed_is_the_undisturbed_run(
    tmp_path, warm_starts, latency_s, kv
):
    recipe = recipe_of(latency_s, kv)
    undisturbed, folder = (new_run(tmp_path / name, recipe) for name in ("undisturbed", "killed"))
    train(undisturbed.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    for moment in (*MOMENTS, None):
        process = PROCESSES.Process(target=attempt, args=(folder.path, BUDGET, warm_starts, moment))
        process.start()
        process.join(250)
        assert process.exitcode == (0 if moment is None else -9)
    assert rows_of(folder) == rows_of(undisturbed)
    ours, theirs = weights_of(folder, recipe), weights_of(undisturbed, recipe)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    spent = [*read_rows(folder.metrics, kind="train")][-1]["device_s"]["generator"]
    assert ("wait_environment" in spent) == (latency_s > 0)


def on_the_wall(recipe):
    cluster = {"type": "wall", "generators": 1, "slots": 8}
    return ResolvedRecipe.model_validate(recipe.model_dump() | {"cluster": cluster})


WALL_BUDGET = 2 * 10 / 3600
"""Device-hours of ten seconds of two devices: compiled kernels take some of them to load in each attempt."""


def killed_and_finished(folder, warm_starts, moments):
    for moment in (*moments, None):
        budget = WALL_BUDGET if moment is None else 1.0  # however slow this machine is, the moment comes
        process = PROCESSES.Process(target=attempt, args=(folder.path, budget, warm_starts, moment))
        process.start()
        process.join(250)
        assert process.exitcode == (0 if moment is None else -9)


@pytest.mark.slow
def test_a_measured_run_killed_in_the_middle_of_episodes_loses_none_and_counts_each_once(tmp_path, warm_starts):
    recipe = on_the_wall(recipe_of(0.0, "keep"))
    folder = new_run(tmp_path / "killed", recipe)
    killed_and_finished(folder, warm_starts, [("train row", 4), ("checkpoint written", 5)])
    rows = [*read_rows(folder.metrics, kind="train")]
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model, thinks=False))
    found = read_checkpoint(folder.checkpoint, folder.metrics, task.train, ())
    state = found.state["cluster"]
    ended = state["next_group"] - len(state["assembling"])
    counted = sum(sum(row["outcomes"].values()) - row["outcomes"]["doubtful"] for row in rows)
    counted += sum(state["judge"]["counts"].values())
    assert counted == ended * recipe.batch.generations
    assert ended >= recipe.batch.prompts * len(rows)


@pytest.mark.slow
def test_episodes_that_do_not_repeat_are_lost_and_said_and_the_run_goes_on(tmp_path, warm_starts):
    recipe = recipe_of(40.0, "keep")
    task = own_task(tmp_path, "Rounds", settings={"draws": True}, turns=9, context_tokens=90, train=64, validation=8)
    settings = {"tasks": [task.model_dump() | {"latency_s": 40.0}], "warm_start": {"steps": 0}}
    recipe = ResolvedRecipe.model_validate(recipe.model_dump() | settings)
    folder = new_run(tmp_path / "killed", recipe)
    for moment in (("train row", 3), None):
        process = PROCESSES.Process(target=attempt, args=(folder.path, BUDGET, warm_starts, moment))
        process.start()
        process.join(250)
        assert process.exitcode == (0 if moment is None else -9)
    lost = sum(row["outcomes"]["crashed"] for row in read_rows(folder.metrics, kind="train"))
    assert lost > 0
    assert any("other replies than before" in text for text in folder.read_status().warnings)
