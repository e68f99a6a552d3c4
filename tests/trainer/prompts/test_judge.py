"""Answers that could not be judged leave their group; a verifier that judges nothing ends the run."""

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from trainer.episodes import played
from trainer.tiny import make_cluster, make_group, make_prompt, random_policy, tiny_recipe

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.prompts.judge import MAX_LOST_GROUPS, Judge, VerifierFailed
from scalerl.rollout import Judgement
from scalerl.schedules import SCHEDULES
from scalerl.tasks import Task

RECIPE = tiny_recipe()


class Scripted:
    """Says of each answer what its first token stands for; `slow` makes the first answers the last to be judged."""

    outcomes = ("right", "wrong", "unparsable", "timed_out", "crashed")

    def __init__(self, num_judges=1, slow=False):
        self.num_judges, self.slow = num_judges, slow

    def judge(self, prompt, response):
        if self.slow:
            time.sleep(0.02 * (8 - response[1]))
        return Judgement(self.outcomes[response[0]])


def scripted(**settings: Any) -> Task:
    """As much of a task as a judge asks for."""
    return cast(Task, Scripted(**settings))


def rollouts(*firsts):
    return make_group("p", [[t, i] for i, t in enumerate(firsts)], [[-1.0, -1.0]] * len(firsts), [0.0] * len(firsts))


def judged(judge, *firsts):
    return judge.group(make_prompt("p"), rollouts(*firsts).rollouts)


def test_answers_that_were_not_judged_are_counted_and_leave_their_group():
    judge = Judge(scripted(), RECIPE)
    group = judged(judge, 0, 3, 1, 4, 2, 3)
    assert group.outcomes == ("right", "wrong", "unparsable")
    assert group.rewards == (1.0, -1.0, -1.0)
    assert [rollout.tokens[1] for rollout in group.rollouts] == [0, 2, 4]
    assert group.pass_rate == pytest.approx(1 / 3)
    assert judge.take_counts() == {"right": 1, "wrong": 1, "unparsable": 1, "timed_out": 2, "crashed": 1, "doubtful": 0}
    assert sum(judge.take_counts().values()) == 0


def test_one_judged_answer_makes_no_group():
    assert judged(Judge(scripted(), RECIPE), 0, 3, 4, 3) is None
    assert judged(Judge(scripted(), RECIPE), 0, 3, 4, 0) is not None


def test_threads_change_neither_verdicts_nor_their_order():
    one, many = Judge(scripted(), RECIPE), Judge(scripted(num_judges=8, slow=True), RECIPE)
    answers = (0, 1, 2, 0, 3, 1, 0, 4)
    assert judged(many, *answers).outcomes == judged(one, *answers).outcomes
    assert [r.tokens[1] for r in judged(many, *answers).rollouts] == [0, 1, 2, 3, 5, 6]


def test_a_verifier_that_judges_nothing_ends_the_run_with_its_task_and_what_was_seen():
    judge = Judge(scripted(), RECIPE)
    for _ in range(MAX_LOST_GROUPS - 1):
        assert judged(judge, 3, 4, 4) is None
    with pytest.raises(VerifierFailed, match=r"task 'k_smallest': .* \(the last: 1 timed_out, 2 crashed\)"):
        judged(judge, 3, 4, 4)


def test_one_group_in_between_starts_the_count_of_lost_groups_again():
    judge = Judge(scripted(), RECIPE)
    for _ in range(3):
        for _ in range(MAX_LOST_GROUPS - 1):
            judged(judge, 4, 4)
        judged(judge, 0, 1)


def test_a_judge_goes_on_where_its_state_was_taken():
    judge, other = Judge(scripted(), RECIPE), Judge(scripted(), RECIPE)
    for _ in range(MAX_LOST_GROUPS - 1):
        judged(judge, 4, 4)
    other.load_state_dict(judge.state_dict())
    assert other.take_counts()["crashed"] == 2 * (MAX_LOST_GROUPS - 1)
    with pytest.raises(VerifierFailed):
        judged(other, 4, 4)


def test_lost_episodes_leave_their_group_and_each_fault_is_said_once_whatever_its_numbers():
    judge = Judge(scripted(), RECIPE)
    failed = [played([[5]], [0.0], "error", why=f"ValueError: seed {seed}") for seed in (17, 18)]
    late = played([[5]], [0.0], "timed_out", why="took more than 2 s")
    won, lost = played([[5], [6]], [0.5, 1.0], "won"), played([[5]], [-1.0], "rules_broken", why="no number")
    group = judge.group(make_prompt("p"), [won, *failed, late, lost])
    assert group is not None
    assert (group.outcomes, group.rewards) == (("right", "unparsable"), (1.5, -1.0))
    said = "task 'k_smallest': an episode was thrown away, as its environment failed: "
    assert [*judge.faults.values()] == [f"{said}ValueError: seed 17", f"{said}took more than 2 s"]
    other = Judge(scripted(), RECIPE)
    other.load_state_dict(judge.state_dict())
    assert other.faults == judge.faults
    for one in (judge, other):
        assert one.take_ends() == {"won": 1, "error": 2, "timed_out": 1, "rules_broken": 1}
    assert judge.take_ends() == {}
    for word in "abcdef":
        judge.group(make_prompt("p"), [won, won, played([[5]], [0.0], "error", why=word)])
    assert len(judge.faults) == 5


def test_a_run_whose_environments_all_fail_ends_with_their_last_fault():
    judge = Judge(scripted(), RECIPE)
    failed = [played([[5]], [0.0], "error", why="KeyError: 'board'"), played([[5]], [0.0], "timed_out", why="late")]
    for _ in range(MAX_LOST_GROUPS - 1):
        assert judge.group(make_prompt("p"), failed) is None
    with pytest.raises(
        VerifierFailed, match=r"the environment failed .* 1 timed_out, 1 crashed\); its last fault: late"
    ):
        judge.group(make_prompt("p"), failed)


def test_answers_read_by_dropping_something_are_counted_as_doubtful_and_say_what_was_dropped():
    judge = Judge(scripted(), RECIPE)
    judge.task.judge = lambda prompt, response: Judgement("right", "the unit 'apples'" if response[1] == 2 else "")
    group = judged(judge, 0, 0, 0, 0)
    assert group.dropped == ("", "", "the unit 'apples'", "")
    assert judge.take_counts()["doubtful"] == 1
    judge.task.judge = lambda prompt, response: Judgement("right")
    assert judged(judge, 0, 0).dropped == ()


def flaky(task, share):
    """The task, but a share of its answers, by what they say, is never judged."""
    judge = task.judge

    def fails_at_times(prompt, response):
        draw = np.random.default_rng([*response, len(response)]).random()
        return Judgement("crashed") if draw < share else judge(prompt, response)

    task.judge = fails_at_times


@pytest.mark.parametrize("off_policy", [{"type": "pipeline", "k": 4}, {"type": "ppo_off_policy", "k": 2}])
def test_schedules_fill_their_batches_where_groups_shrink_and_get_lost(off_policy):
    recipe = tiny_recipe(off_policy=off_policy, zero_variance="keep")
    cluster = make_cluster(recipe, random_policy(recipe))
    flaky(cluster.task, 0.5)
    sizes = set()
    for _ in range(12):
        step = SCHEDULES[recipe.off_policy.type](cluster)
        assert len(step.groups) == recipe.batch.prompts
        assert not step.update.metrics["skipped"]
        sizes |= {len(group.rollouts) for group in step.groups}
    counts = cluster.judge.take_counts()
    assert sizes == {2, 3, 4}
    assert 0.4 < counts["crashed"] / sum(counts.values()) < 0.6


@pytest.mark.parametrize("off_policy", [{"type": "pipeline", "k": 4}, {"type": "ppo_off_policy", "k": 2}])
def test_a_cluster_without_a_working_verifier_stops(off_policy):
    recipe = tiny_recipe(off_policy=off_policy)
    cluster = make_cluster(recipe, random_policy(recipe))
    flaky(cluster.task, 1.0)
    with pytest.raises(VerifierFailed, match="k_smallest"):
        SCHEDULES[recipe.off_policy.type](cluster)


@pytest.mark.parametrize("where", ["loss", "reward"])
def test_the_learner_gives_every_rollout_of_unequal_groups_its_own_advantage(where):
    recipe = tiny_recipe(advantage="none", kl={"coefficient": 0.1, "estimator": "k1", "where": where})
    learner = TorchLearner(random_policy(recipe), recipe)
    groups = [rollouts(5, 6, 7), rollouts(5, 6)]
    groups = [replace(groups[0], rewards=(1.0, -1.0, -1.0)), replace(groups[1], rewards=(-1.0, 1.0))]
    batch = learner.with_scores(make_batch(groups))
    penalties = [0.0] * 5
    if where == "reward":  # k1 is the sum of log behaviour - log reference over the answer's own tokens
        difference = (batch.behaviour_BT - batch.reference_BT).double()
        penalties = [0.1 * float(row[mask].sum()) for row, mask in zip(difference, batch.mask_BT, strict=True)]
    rewards = [r - p for r, p in zip([1.0, -1.0, -1.0, -1.0, 1.0], penalties, strict=True)]
    means = [sum(rewards[:3]) / 3] * 3 + [sum(rewards[3:]) / 2] * 2
    expected = torch.tensor([r - m for r, m in zip(rewards, means, strict=True)])
    torch.testing.assert_close(learner.advantages(groups, batch).squeeze(1), expected, rtol=1e-5, atol=1e-6)
