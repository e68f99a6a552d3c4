"""Downstream evaluations: pass@k against enumeration, what is measured when, and that training never sees it."""

import json
from itertools import combinations

import pytest
from pydantic import ValidationError
from trainer.tiny import PolicySampler, random_policy, tiny_recipe

from scalerl.evaluation.downstream import DownstreamEvaluator, mean_pass_at_k, pass_at_k
from scalerl.rollout import Outcome
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import WALL_FIELDS, read_rows
from scalerl.run.train import train
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_all_choices_of_k_samples_with_a_right_one(n):
    for c in range(n + 1):
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            choices = list(combinations(samples, k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices), abs=1e-12)


def test_pass_at_k_of_many_samples_stays_exact():
    # 1 - C(199, 100) / C(200, 100) = 1 - 100 / 200; floats of either binomial would lose it.
    assert pass_at_k(200, 1, 100) == 0.5
    assert pass_at_k(100_000, 1, 50_000) == 0.5


def test_answers_that_were_not_judged_count_neither_for_nor_against_a_problem():
    outcomes: list[list[Outcome]] = [
        ["right", "wrong", "crashed"],
        ["wrong", "timed_out", "unparsable"],
        ["right", "crashed", "crashed"],
    ]
    assert mean_pass_at_k(outcomes, 1) == pytest.approx((0.5 + 0 + 1) / 3)
    assert mean_pass_at_k(outcomes, 2) == pytest.approx((1 + 0) / 2)  # the last problem has one judged answer
    assert mean_pass_at_k(outcomes, 3) is None


@pytest.fixture
def file(tmp_path):
    """Twelve problems whose one right answer, the empty set in words, a random policy never writes."""
    path = tmp_path / "quiz.jsonl"
    path.write_text("".join(json.dumps({"question": f"{i}", "answers": ["a", "b", "0"]}) + "\n" for i in range(12)))
    return str(path)


def measured(file, **settings):
    return {"type": "qa", "name": "quiz", "path": file, "template": "{question}", **settings}


def recipe_with(*downstream, **changes):
    return tiny_recipe(evaluation={"every": 0.2, "samples": 2, "downstream": downstream}, **changes)


def evaluator_of(recipe):
    tokenizer = make_tokenizer(recipe.model)
    tasks = all_tasks(recipe.tasks, recipe.evaluation.downstream, tokenizer).downstream
    return DownstreamEvaluator(recipe=recipe, seed=0, tasks=tasks)


def sampler_of(evaluator):
    return PolicySampler(evaluator.recipe, evaluator.tasks[0], random_policy(evaluator.recipe))


def test_a_row_has_every_problem_and_agrees_with_itself(file):
    recipe = recipe_with(measured(file, samples=4, k=[2, 4]))
    evaluator = evaluator_of(recipe)
    (row,) = evaluator.measure(sampler_of(evaluator), 0)
    assert (row["task"], row["num_prompts"], row["num_samples"]) == ("quiz", 12, 48)
    assert row["pass_at_1"] == pytest.approx(row["mean_at_4"]) == pytest.approx(row["outcomes"]["right"] / 48)
    assert row["pass_at_1"] <= row["pass_at_2"] <= row["pass_at_4"]


def test_each_file_is_measured_as_often_as_it_says(file):
    often, seldom = measured(file, samples=1), measured(file, name="seldom", samples=1, every=3)
    evaluator = evaluator_of(recipe_with(often, seldom))
    sampler = sampler_of(evaluator)
    due = [[row["task"] for row in evaluator.measure(sampler, index)] for index in range(5)]
    assert due == [["quiz", "seldom"], ["quiz"], ["quiz"], ["quiz", "seldom"], ["quiz"]]


def rows_of(folder, *kinds):
    return [{k: v for k, v in row.items() if k not in WALL_FIELDS} for row in read_rows(folder) if row["kind"] in kinds]


def test_it_changes_nothing_of_the_run_and_goes_on_after_a_resume_where_it_was(file, tmp_path):
    changes = {"cluster": {"parameters_stand_for": 1e5}}
    recipes = {
        "without": (recipe_with(**changes), (0.5,)),
        "with": (recipe_with(measured(file, samples=2, k=[1, 2], every=2), **changes), (0.5,)),
        "resumed": (recipe_with(measured(file, samples=2, k=[1, 2], every=2), **changes), (0.25, 0.5)),
    }
    folders = {}
    for name, (recipe, budgets) in recipes.items():
        folders[name] = RunFolder(tmp_path / name)
        folders[name].create(recipe, 0)
        for budget in budgets:
            train(folders[name].path, budget_gpu_hours=budget, warm_starts=tmp_path / "starts")
    logs = {name: folder.metrics for name, folder in folders.items()}
    assert rows_of(logs["with"], "eval", "train") == rows_of(logs["without"], "eval", "train")
    assert rows_of(logs["resumed"], "eval", "train", "downstream") == rows_of(
        logs["with"], "eval", "train", "downstream"
    )
    evaluations = rows_of(logs["with"], "eval")
    assert [row["step"] for row in rows_of(logs["with"], "downstream")] == [row["step"] for row in evaluations[::2]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 4, "k": [8]}, "pass@8 cannot be estimated from 4 samples"),
        ({"weight": 2.0}, "weight has no effect on a file that is only measured"),
        ({"validation": 0.1}, "validation has no effect on a file that is only measured"),
        ({"solution": "s"}, "solution has no effect on a file that is only measured"),
        ({"name": "k_smallest"}, "two tasks are called 'k_smallest'"),
        ({"k": []}, "at least 1 item"),
    ],
)
def test_settings_without_effect_are_refused(file, settings, message):
    with pytest.raises(ValidationError, match=message):
        recipe_with(measured(file, **settings))
