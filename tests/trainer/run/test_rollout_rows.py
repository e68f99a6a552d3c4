"""Which rollouts of a batch are kept, and what is said of them beside what they wrote."""

from dataclasses import replace
from typing import Any

import pytest
from formats_page import section
from trainer.episodes import played
from trainer.tiny import make_group, tiny_recipe

from scalerl.run.rollout_rows import known_advantages, trained_rollouts
from scalerl.tasks.task import Written
from scalerl.tokens.symbols import SymbolTokenizer

TOKENIZER = SymbolTokenizer()
READER = TOKENIZER.reader
WRITTEN = {"mixed": "a", "other": "b"}
"""Right answers by the prompts' ids."""


class WrittenTask:
    """A task of which only the right answers are asked."""

    def written(self, prompt):
        return Written(where="", text="", answer=WRITTEN.get(prompt.id))


TASK: Any = WrittenTask()


def group(name, rewards, texts=None):
    tokens = [[*TOKENIZER.encode(text), 1] for text in texts or ["9</think>a"] * len(rewards)]
    return make_group(name, tokens, [[-1.0] * len(row) for row in tokens], rewards)


MIXED, ALIKE, OTHER = group("mixed", [1.0, -1.0]), group("alike", [-1.0, -1.0]), group("other", [1.0, -1.0, -1.0, -1.0])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # centred on 0 and -.5; over their standard deviation, sqrt((2 + 3) / 6)
        ({}, [1.0954, -1.0954, None, None, 1.6432, -0.5477, -0.5477, -0.5477]),
        ({"advantage": "none"}, [1.0, -1.0, None, None, 1.5, -0.5, -0.5, -0.5]),
        ({"advantage": "none", "zero_variance": "keep"}, [1.0, -1.0, 0.0, 0.0, 1.5, -0.5, -0.5, -0.5]),
        ({"advantage": "prompt"}, [1.0, -1.0, None, None, 1.7321, -0.5774, -0.5774, -0.5774]),
    ],
)
def test_advantages_are_those_of_the_whole_batch_and_of_nobody_outside_the_loss(changes, expected):
    found = known_advantages(tiny_recipe(**changes), [MIXED, ALIKE, OTHER])
    assert found == [None if one is None else pytest.approx(one, abs=1e-4) for one in expected]


def by_turn(name, *episodes, is_by_turn=True):
    """A group of episodes whose turns got these rewards, of one token each."""
    base = make_group(name, [[5]] * len(episodes), [[-1.0]] * len(episodes), [sum(rewards) for rewards in episodes])
    rollouts = [
        played([[5]] * len(rewards), rewards, "lost", by_turn=is_by_turn, prompt=base.prompt) for rewards in episodes
    ]
    return replace(base, rollouts=tuple(rollouts))


def test_with_credit_by_turn_each_turn_has_its_advantage_and_other_groups_keep_theirs():
    # Rewards to come: 1, 1 and 0, so that the turns are 1 - 2/3, 1 - 1/2, -2/3; the second turn of a pair: +-1/2.
    turns = by_turn("turns", [0.0, 1.0], [1.0, 0.0], [0.0])
    found = known_advantages(tiny_recipe(advantage="none"), [MIXED, ALIKE, turns])
    assert found is not None
    assert found[:4] == [1.0, -1.0, None, None]
    assert found[4:] == [pytest.approx(one) for one in [(1 / 3, 0.5), (1 / 3, -0.5), (-2 / 3,)]]
    rows = list(trained_rollouts(READER, tiny_recipe(advantage="none"), [turns], 0, TASK))
    assert [row["advantage"] for row in rows] == [None] * 3
    assert [tuple(turn["advantage"] for turn in row["turns"]) for row in rows] == found[4:]


def test_with_credit_by_episode_the_turns_have_none_of_their_own():
    whole = by_turn("whole", [0.0, 1.0], [0.0], is_by_turn=False)
    rows = list(trained_rollouts(READER, tiny_recipe(advantage="none"), [whole], 0, TASK))
    assert [row["advantage"] for row in rows] == [0.5, -0.5]
    assert all("advantage" not in turn for row in rows for turn in row["turns"])


@pytest.mark.parametrize(
    "changes",
    [
        {"advantage": "running"},
        {"critic": {"type": "value_network", "value_clip": None}},
        {"kl": {"coefficient": 0.1, "where": "reward", "estimator": "k1"}},
    ],
)
def test_an_advantage_that_rewards_alone_do_not_decide_is_not_told(changes):
    assert known_advantages(tiny_recipe(**changes), [MIXED, OTHER]) is None


def test_a_batch_without_variance_has_rollouts_and_no_advantage():
    rows = list(trained_rollouts(READER, tiny_recipe(), [ALIKE], 0, TASK))
    assert [(row["advantage"], row["masked"], row["reward"]) for row in rows] == [(None, "no variance", -1.0)] * 2


def test_rollouts_that_are_off_the_mask_say_why():
    cut = replace(MIXED, rollouts=(replace(MIXED.rollouts[0], truncated=True), MIXED.rollouts[1]))
    kept = list(trained_rollouts(READER, tiny_recipe(truncated="keep"), [cut], 0, TASK))
    masked = list(trained_rollouts(READER, tiny_recipe(truncated="mask"), [cut], 0, TASK))
    assert [row["masked"] for row in kept] == [None, None]
    assert [row["masked"] for row in masked] == ["truncated", None]


def test_kept_rollouts_come_from_all_over_the_batch_and_from_other_places_the_next_time():
    groups = [group(f"{number}", [1.0, -1.0], ["9</think>a", "8</think>b"]) for number in range(4)]
    for reading, answer in ((0, "a"), (1, "b"), (2, "a")):
        rows = list(trained_rollouts(READER, tiny_recipe(), groups, reading, TASK))
        assert [row["prompt_id"] for row in rows] == ["0", "1", "2", "3"]
        assert {row["answer"][0]["text"] for row in rows} == {answer}
    assert list(trained_rollouts(READER, tiny_recipe(), [], 0, TASK)) == []


def test_a_row_has_the_right_answer_if_one_is_written():
    rows = trained_rollouts(READER, tiny_recipe(), [MIXED, ALIKE], 0, TASK)
    assert [row["right_answer"] for row in rows] == ["a", "a", None, None]


def test_rows_have_the_keys_of_the_documentation():
    always, trained = (section("`rollouts.jsonl`").after(f"\n{kind}: ").table() for kind in ("every row", "`trained`"))
    (row, *_) = trained_rollouts(READER, tiny_recipe(), [MIXED], 0, TASK)
    place, of_episodes = {"kind", "step", "compute_gpu_hours"}, {"turns", "end", "why", "others"}
    documented = always.keys() | trained.keys()
    assert place | row.keys() == documented - of_episodes == section("`rollouts.jsonl`").example().keys()
    assert all(always[name].startswith("only of episodes") for name in of_episodes)


def test_rows_of_episodes_have_the_keys_of_the_documentation():
    page = section("`rollouts.jsonl`")
    always, trained = (page.after(f"\n{kind}: ").table() for kind in ("every row", "`trained`"))
    turn = page.after("the keys of a turn:")
    (row, *_) = trained_rollouts(READER, tiny_recipe(), [by_turn("turns", [0.0, 1.0], [0.0, 0.0, 0.0])], 0, TASK)
    assert {"kind", "step", "compute_gpu_hours"} | row.keys() == (always.keys() | trained.keys()) - {
        "thinking",
        "answer",
    }
    assert row["turns"][1].keys() == turn.table().keys() == turn.example().keys()
    assert row["turns"][0].keys() == turn.table().keys() - {"environment"}
