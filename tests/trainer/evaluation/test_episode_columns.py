"""Columns about episodes, worked out by hand."""

import pytest
from trainer.episodes import played
from trainer.tiny import make_group

from scalerl.evaluation.episode_columns import end_shares, episode_columns, mean_episode_columns
from scalerl.run.train_row import rollout_columns

WON = played([[5, 6], [7], [8, 8, 8]], [0.5, 0.0, 1.0], "won", heard=2)
BROKEN = played([[9]], [-1.0], "rules_broken", heard=2)


def test_turns_rewards_and_tokens_of_the_environment_are_means_over_episodes_alone():
    (answer,) = make_group("p", [[1, 2, 3]], [[-1.0] * 3], [1.0]).rollouts
    # Turns 3 and 1; rewards 1.5 and -1; the environment spoke twice, two tokens each, and never.
    expected = {"turns": 2.0, "earned": 0.25, "environment_tokens": 2.0}
    assert episode_columns([WON, BROKEN, answer]) == expected
    assert episode_columns([answer]) == {}


def test_ends_are_shares_of_all_that_ended_with_a_zero_for_every_other_reason():
    ends = end_shares({"won": 3, "error": 1})["ends"]
    assert (ends["won"], ends["error"], ends["too_long"], sum(ends.values())) == (0.75, 0.25, 0.0, 1.0)
    assert end_shares({}) == {}


def test_tasks_of_a_mix_weigh_by_the_shares_of_those_that_are_episodes():
    part = {"environment_tokens": 0.0}
    parts = [
        {**part, "share": 0.2, "turns": 1.0, "earned": 0.0, **end_shares({"won": 1})},
        {**part, "share": 0.6, "turns": 5.0, "earned": 2.0, **end_shares({"lost": 1})},
        {"share": 0.2},
    ]
    found = mean_episode_columns(parts)
    assert [found["turns"], found["earned"], found["ends"]["won"]] == pytest.approx([4.0, 1.5, 0.25])
    assert mean_episode_columns([{"share": 1.0}]) == {}


def test_a_train_row_counts_the_policys_own_tokens_and_their_staleness():
    group = make_group("p", [[1], [1]], [[-1.0], [-1.0]], [1.0, -1.0])
    row = rollout_columns([type(group)(**{**vars(group), "rollouts": (WON, BROKEN)})], version=3)
    assert row["mean_tokens"] == 3.5
    assert row["staleness"] == {"3": 7}
    assert row["turns"] == 2.0
