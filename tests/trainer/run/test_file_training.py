"""Whole runs on task files: additions from demonstrations to a curve, programs judged in the sandbox."""

import json
import threading

import pytest
import torch
from trainer.runs import rows_of
from trainer.tiny import make_cluster, tiny_recipe

from scalerl.model.build import new_policy
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train
from scalerl.run.warm_start import load_or_train
from scalerl.schedules import pipeline
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

pytestmark = pytest.mark.slow

SMALL = {
    "model": {"hidden": 32, "layers": 2, "heads": 2, "mlp": 64, "tokenizer": "characters"},
    "warm_start": {"steps": 150, "batch": 32, "learning_rate": 5e-3, "noise": 0.0},
    "length_control": {"type": "none"},
    "zero_variance": "keep",
}


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def sums(tmp_path):
    """Additions of one-digit numbers, the sum as the thought."""
    rows = [
        {"question": f"{a}+{b}=", "answer": str(a + b), "solution": str(a + b)} for a in range(10) for b in range(10)
    ]
    return lines(tmp_path / "sums.jsonl", rows)


def recipe_for(tasks, **changes):
    return tiny_recipe(tasks=tasks, **{**SMALL, **changes})


def test_a_scratch_model_trains_on_a_file_of_additions_and_a_resumed_run_is_the_same(sums, tmp_path):
    task = {"type": "math", "path": sums, "template": "{question}", "validation": 0.2}
    recipe = recipe_for([task], generation={"thinking": 3, "answer": 11}, cluster={"parameters_stand_for": 1e5})
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    for folder, budgets in ((whole, (0.6,)), (parts, (0.3, 0.6))):
        folder.create(recipe, 0)
        for budget in budgets:
            train(folder.path, budget_gpu_hours=budget, warm_starts=tmp_path / "starts")
    assert rows_of(whole) == rows_of(parts)
    rows = rows_of(whole)
    readings = [row for row in rows if row["kind"] == "eval"]
    steps = [row for row in rows if row["kind"] == "train"]
    assert len(readings) > 2
    assert len(steps) > 3
    assert all(row["task"] == "math" and row["outcomes"]["crashed"] == 0 for row in readings)
    # Answers are written as \boxed{...}, which only the demonstrations can have taught.
    judged = readings[0]["outcomes"]
    assert judged["right"] + judged["wrong"] > 0.8 * sum(judged.values())
    assert sum(sum(row["outcomes"].values()) for row in steps) >= 16 * len(steps)


CODE = [
    {
        "question": f"f adds {a}",
        "tests": [{"call": "f", "args": [x], "expected": x + a} for x in (0, 5)],
        "solution": f"f=lambda x:x+{a}",
    }
    for a in range(30)
]


def test_programs_are_judged_in_the_sandbox_from_threads_while_the_cluster_trains(tmp_path):
    task = {"type": "code", "path": lines(tmp_path / "code.jsonl", CODE), "template": "{question}", "validation": 0.2}
    recipe = recipe_for(
        [task],
        generation={"thinking": 2, "answer": 40},
        warm_start={**SMALL["warm_start"], "steps": 120},
        batch={"prompts": 2, "generations": 3},
        cluster={"generators": 2, "slots": 3},
    )
    policy = new_policy(recipe)
    load_or_train(
        policy, all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained, recipe, 0, tmp_path / "starts"
    )
    cluster = make_cluster(recipe, policy)
    threads, judge = set(), cluster.task.judge

    def noted(prompt, response):
        threads.add(threading.current_thread().name)
        return judge(prompt, response)

    cluster.task.judge = noted
    steps = [pipeline(cluster) for _ in range(3)]
    counts = cluster.judge.take_counts()
    assert counts["right"] + counts["wrong"] >= 0.8 * sum(counts.values()) >= 14
    assert counts["right"] > 0
    assert len(steps) == 3
    assert all("ThreadPool" in name for name in threads)


def test_a_warm_start_without_demonstrations_is_refused_and_one_of_no_steps_begins_at_random(tmp_path):
    path = lines(tmp_path / "bare.jsonl", [{"question": f"{a}+1=", "answer": str(a + 1)} for a in range(50)])
    recipe = recipe_for([{"type": "math", "path": path}])
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained
    with pytest.raises(ValueError, match=r"no task has written solutions.*`solution`.*, or set warm_start.steps to 0"):
        load_or_train(new_policy(recipe), task, recipe, 0, tmp_path / "starts")
    untaught = recipe.model_copy(update={"warm_start": recipe.warm_start.model_copy(update={"steps": 0})})
    policy, drawn = new_policy(untaught), new_policy(untaught)
    load_or_train(policy, task, untaught, 0, tmp_path / "starts")
    drawn.init_weights(torch.Generator().manual_seed(0))
    both = zip(policy.parameters(), drawn.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in both)
