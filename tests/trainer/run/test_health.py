"""Warnings: none in healthy rows and runs, the right one in rows made ill, and where a run leaves them."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from trainer.learner_cases import random_groups
from trainer.own_games import own_task
from trainer.tiny import make_group, random_policy, tiny_recipe

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.run.health import Health, health_warnings
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train


def row(step, **changes):
    """A train row of a healthy run."""
    healthy = {"truncated": 0.04, "mismatch": 0.02, "ess": 0.98, "entropy": 0.6, "pass_rate": 0.4, "loss": 0.1}
    return {"step": step, "skipped": False, **healthy, **changes}


def run_of(num_steps=200, since=150, **changes):
    """Early and recent rows of a run whose rows change at step `since`."""
    rows = [row(step, **(changes if step >= since else {})) for step in range(1, num_steps + 1)]
    return rows[:60], rows[-20:]


def test_healthy_rows_give_no_warning():
    assert health_warnings(*run_of()) == {}


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"truncated": 0.12}, "truncation", "12% of answers are cut off at the token limit, 4% at the start"),
        ({"mismatch": 0.13}, "mismatch", "0.13 nats apart, 0.02 at steps 11 to 60"),
        ({"ess": 0.2}, "ess", "effective sample size is 20%"),
        ({"entropy": 0.01}, "entropy", "down to 0.010 nats per token at a pass rate of 0.40"),
        (
            {"skipped": True},
            "skipped",
            "20 of the last 20 steps trained on nothing: no group had answers with different rewards",
        ),
        (
            {"skipped": True, "loss": None},
            "skipped",
            "20 of the last 20 steps trained on nothing: the loss or its gradient was not finite",
        ),
    ],
)
def test_each_rule_finds_what_it_is_for_and_nothing_else(changes, name, says):
    found = health_warnings(*run_of(**changes))
    assert set(found) == {name}
    assert says in found[name]


@pytest.mark.parametrize(
    "changes",
    [
        {"truncated": 0.09},
        {"mismatch": 0.09},  # more than twice the 0.02 of before, yet not much
        {"ess": 0.3},
        {"entropy": 0.01, "pass_rate": 0.95},  # the task is done
        {"entropy": 0.03},
    ],
)
def test_what_lies_inside_the_limits_is_no_warning(changes):
    assert health_warnings(*run_of(**changes)) == {}


@pytest.mark.parametrize(
    ("column", "name", "before", "after"), [("truncated", "truncation", 0.3, 0.4), ("mismatch", "mismatch", 0.13, 0.3)]
)
def test_what_was_so_from_the_start_is_warned_of_a_rise_only(column, name, before, after):
    assert health_warnings(*run_of(since=1, **{column: before})) == {}
    rows = [row(step, **{column: before if step < 150 else after}) for step in range(1, 201)]
    assert set(health_warnings(rows[:60], rows[-20:])) == {name}


def test_skipped_steps_lack_columns_and_are_passed_over():
    early, recent = run_of(mismatch=0.13)
    holes = [
        {k: v for k, v in r.items() if k != "mismatch"} | {"skipped": True} if i < 4 else r
        for i, r in enumerate(recent)
    ]
    assert set(health_warnings(early, holes)) == {"mismatch"}


def test_the_first_steps_are_compared_with_nothing():
    rows = [row(step, truncated=0.9 if step > 20 else 0.0) for step in range(1, 42)]
    assert health_warnings(rows[:40], rows[20:40]) == {}
    assert set(health_warnings(rows[:41], rows[21:41])) == {"truncation"}


def test_a_warning_is_said_once_while_it_lasts():
    health, said = Health(), []
    for step in range(1, 201):
        health.add(row(step, truncated=0.2 if step >= 150 else 0.04))
        said += health.unsaid()
    assert len(said) == 1
    assert list(health.warnings()) == ["truncation"]


def skipping(*skipped, loss: float | None = 0.1):
    """The health of a run with a row per element: whether its step trained on nothing."""
    health = Health()
    for step, one in enumerate(skipped, start=1):
        health.add(row(step, skipped=one, loss=loss))
    return health


def test_a_run_of_any_length_whose_steps_trained_on_nothing_says_so():
    assert skipping(True).warnings() == {}
    said = (
        "the only step trained on nothing, so the weights have not changed: no group had answers with different rewards"
    )
    assert skipping(True).warnings(ended=True) == {"skipped": said}
    said = (
        "none of the 7 steps trained on anything, so the weights have not changed: "
        "the loss or its gradient was not finite"
    )
    assert skipping(*[True] * 7, loss=None).warnings() == {"skipped": said}


def test_a_short_run_says_at_its_end_how_many_of_its_steps_trained_on_nothing():
    health = skipping(True, False, False, False)
    assert health.warnings() == {}
    said = "1 of the last 4 steps trained on nothing: no group had answers with different rewards"
    assert health.warnings(ended=True) == {"skipped": said}
    assert skipping(True, False, False, False, False).warnings(ended=True) == {}


def test_steps_that_trained_on_nothing_for_several_reasons_name_each():
    health = Health()
    columns = [(0.0, 0.0, 0), (None, 1.0, 3), (0.0, 0.0, 0), (0.0, 0.0, 2), (0.3, None, 2)]
    for step, (loss, grad_norm, survivors) in enumerate(columns, start=1):
        health.add(row(step, skipped=True, loss=loss, grad_norm=grad_norm, survivors=survivors))
    said = health.warnings(ended=True)["skipped"]
    assert said.endswith(
        "in 2 no group had answers with different rewards, in 1 the loss or its gradient was not finite, "
        "in 1 every token was masked, in 1 the gradient overflowed FP16"
    )


def test_a_run_that_trains_after_all_is_no_longer_warned_of():
    assert skipping(*[True] * 5, *[False] * 20).warnings(ended=True) == {}


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_that_no_step_has_trained_is_done_with_a_warning_in_its_log_and_its_status(tmp_path, capsys):
    # A model from random weights without a warm start is never right, so that no group has an advantage.
    folder = RunFolder(tmp_path / "run")
    folder.create(tiny_recipe(warm_start={"steps": 1}, evaluation={"every": 100.0, "samples": 2}), 0)
    train(folder.path, budget_gpu_hours=0.5, warm_starts=tmp_path)
    rows, status = list(read_rows(folder.metrics, kind="train")), folder.read_status()
    assert all(row["skipped"] for row in rows)
    assert status.state == "done"
    assert any("trained on" in text and "the weights have not changed" in text for text in status.warnings)
    assert capsys.readouterr().out.count("the weights have not changed") == 1
    # An extension counts the steps of before.
    train(folder.path, budget_gpu_hours=1.0, warm_starts=tmp_path)
    steps = folder.read_status().step
    assert steps > len(rows)
    assert any(f"none of the {steps} steps trained on anything" in text for text in folder.read_status().warnings)


def test_a_run_says_once_which_environment_fails_and_counts_what_it_loses(tmp_path, capsys):
    task = own_task(tmp_path, "Shaky", turns=1, context_tokens=32, train=30, validation=4).model_dump(mode="json")
    recipe = tiny_recipe(
        tasks=[task],
        model={"tokenizer": "characters"},
        generation={"thinking": "none", "answer": 2},
        length_control={"type": "none"},
        warm_start={"steps": 0},
        zero_variance="keep",
    )
    folder = RunFolder(tmp_path / "run")
    folder.create(recipe, 0)
    train(folder.path, budget_gpu_hours=0.1, warm_starts=tmp_path)
    rows, status = list(read_rows(folder.metrics, kind="train")), folder.read_status()
    assert sum(row["outcomes"]["crashed"] for row in rows) > 0
    assert all(row["ends"]["error"] == row["outcomes"]["crashed"] / sum(row["outcomes"].values()) for row in rows)
    (said,) = [text for text in status.warnings if "no board" in text]
    assert said.startswith("task 'Shaky': an episode was thrown away, as its environment failed: ")
    (of_evaluation,) = [text for text in status.warnings if "no view" in text]
    assert of_evaluation.startswith("task 'Shaky': an episode was thrown away, as its environment failed: ")
    assert all(row["outcomes"]["crashed"] == row["num_samples"] for row in read_rows(folder.metrics, kind="eval"))
    printed = capsys.readouterr().out
    assert (printed.count("no board"), printed.count("no view")) == (1, 1)


def test_ratios_and_effective_sample_size_by_hand():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    groups = random_groups(policy)
    batch = make_batch(groups)
    metrics = TorchLearner(policy, recipe).accumulate(batch, torch.zeros(len(batch.length_B), 1))
    ratios = []
    for group in groups:
        for rollout in group.rollouts:
            tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
            own = policy.score(tokens, 1.0).logprobs_BT[0, len(rollout.prompt.tokens) :].detach().double()
            gap = own - torch.from_numpy(rollout.logprobs).double()
            ratios += gap[torch.from_numpy(~rollout.forced)].exp().tolist()
    assert metrics["ratio_mean"] == pytest.approx(sum(ratios) / len(ratios), rel=1e-4)
    assert metrics["ess"] == pytest.approx(sum(ratios) ** 2 / len(ratios) / sum(r * r for r in ratios), rel=1e-4)
    assert metrics["ess"] < 0.95


def test_the_gap_is_told_apart_by_lag_and_by_task():
    recipe = tiny_recipe()
    groups = [
        replace(group, prompt=replace(group.prompt, task=task), rollouts=tuple(aged(group.rollouts, lags)))
        for group, task, lags in zip(random_groups(random_policy(recipe)), "abab", ([0], [0, 1], [1], [3]), strict=True)
    ]
    learner = TorchLearner(random_policy(recipe), recipe)
    learner.version = 3
    batch = make_batch(groups)
    metrics = learner.accumulate(batch, torch.ones(len(batch.length_B), 1))
    by_lag, by_task = defaultdict(list), defaultdict(list)
    for group in groups:
        for rollout in group.rollouts:
            tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
            own = learner.policy.score(tokens, 1.0).logprobs_BT[0, len(rollout.prompt.tokens) :].tolist()
            for x, y, version, forced in zip(own, rollout.logprobs, rollout.versions, rollout.forced, strict=True):
                if not forced:
                    by_lag[f"mismatch_lag_{3 - version}"].append(abs(x - y))
                    by_task[f"mismatch_task_{group.prompt.task}"].append(abs(x - y))
    expected = {name: sum(gaps) / len(gaps) for name, gaps in {**by_lag, **by_task}.items()}
    found = {name: metrics[name] for name in metrics if name.startswith(("mismatch_lag_", "mismatch_task_"))}
    assert found == pytest.approx(expected, rel=1e-4)


def aged(rollouts, lags):
    """The rollouts with tokens of weights that are so many steps old, in turn, for a trainer of version 3."""
    for rollout in rollouts:
        versions = [3 - lags[place % len(lags)] for place in range(len(rollout.tokens))]
        yield replace(rollout, versions=np.array(versions, dtype=np.int32))


def test_a_token_that_became_impossible_leaves_numbers_for_the_log():
    recipe = tiny_recipe()
    group = make_group("p", [[5, 1], [7, 1]], [[-2000.0, -1.0], [-1.0, -1.0]], [1.0, -1.0])
    metrics = TorchLearner(random_policy(recipe), recipe).accumulate(make_batch([group]), torch.tensor([[1.0], [-1.0]]))
    assert metrics["ratio_mean"] == pytest.approx(torch.tensor(300.0, dtype=torch.float64).exp().item() / 4, rel=1e-3)
    assert 0 < metrics["ess"] <= 1
