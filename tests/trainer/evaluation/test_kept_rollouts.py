"""Rollouts as they are kept for people to read: spans written out by hand."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from trainer.episodes import played
from trainer.tiny import tiny_recipe

from scalerl.evaluation.kept_rollouts import (
    END_BYTES,
    evenly_placed,
    kept_beginning,
    kept_ends,
    kept_of_evaluation,
    rollout_text,
    spans,
)
from scalerl.generator.request import Finished, Request
from scalerl.rollout import Judgement, Prompt, Rollout
from scalerl.tasks import make_task
from scalerl.tokens import Tokenizer
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.tokens.symbols import SymbolTokenizer

SYMBOLS = SymbolTokenizer()
TEXT = CharacterTokenizer()


def rollout_of(
    response, *, prompt="3:k9a2", versions=None, forced=(), truncated=False, name="a", tokenizer: Tokenizer = SYMBOLS
):
    tokens = np.array([*tokenizer.encode(response), *([] if truncated else tokenizer.eos_ids)])
    return Rollout(
        prompt=Prompt(task="k_smallest", id=name, tokens=tokenizer.prompt(prompt), answer="29a", difficulty=4),
        tokens=tokens,
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        versions=np.array(versions or [7] * len(tokens), dtype=np.int32),
        forced=np.isin(np.arange(len(tokens)), forced),
        truncated=truncated,
    )


def test_spans_tell_prompt_thinking_and_answer_with_the_weights_and_the_forcing_of_every_token():
    rollout = rollout_of("9ak2</think>29a", versions=[3, 3, 4, 4, 4, 4, 5, 5, 5], forced=[4])
    assert rollout_text(SYMBOLS.reader, rollout) == {
        "prompt": [{"text": "3:k9a2<think>", "tokens": 7}],
        "thinking": [
            {"text": "9a", "tokens": 2, "version": 3},
            {"text": "k2", "tokens": 2, "version": 4},
            {"text": "</think>", "tokens": 1, "version": 4, "forced": True},
        ],
        "answer": [{"text": "2", "tokens": 1, "version": 4}, {"text": "9a", "tokens": 3, "version": 5}],
    }


def test_an_episode_is_kept_turn_by_turn_with_what_its_environment_said_and_why_it_ended():
    first, second = ([*SYMBOLS.encode(text), *SYMBOLS.eos_ids] for text in ("k</think>2", "9a"))
    heard = SYMBOLS.encode("x")
    episode = played([first, second], [0.1, -1.0], "rules_broken", why="no number")
    tokens = [*first, *heard, *second]
    kept = rollout_text(SYMBOLS.reader, replace(episode, tokens=np.array(tokens)))
    assert (kept["end"], kept["why"]) == ("rules_broken", "no number")
    assert kept["turns"] == [
        {
            "turn": 1,
            "thinking": [{"text": "k</think>", "tokens": 2, "version": 0}],
            "answer": [{"text": "2", "tokens": 2, "version": 0}],
            "reward": 0.1,
        },
        {
            "turn": 2,
            "environment": [{"text": "x", "tokens": 1}],
            "thinking": [{"text": "9a", "tokens": 3, "version": 0}],
            "answer": [],
            "reward": -1.0,
        },
    ]
    assert kept.keys() == {"prompt", "turns", "end", "why", "others"}
    assert kept["others"] == []


def test_other_conversations_of_an_agent_are_kept_with_what_they_repeat_as_said():
    episode = played([[*SYMBOLS.encode("k</think>2")]], [1.0], "won")
    repeated, written = SYMBOLS.encode("k9"), SYMBOLS.encode("a</think>3")
    other = played([[*repeated], [*written]], [0.0, 0.0], "won", heard=0)
    assert other.episode is not None
    other = replace(other, episode=replace(other.episode, turns=other.episode.turns[1:]))  # the first is only repeated
    kept = rollout_text(SYMBOLS.reader, replace(episode, others=(other,) * 5))
    turn = {
        "turn": 1,
        "environment": [{"text": "k9", "tokens": 2}],
        "thinking": [{"text": "a</think>", "tokens": 2, "version": 0}],
        "answer": [{"text": "3", "tokens": 1, "version": 0}],
        "reward": 0.0,
    }
    assert kept["others"] == [[turn], [turn], [turn], [{"left_out": 2}]]
    assert [turn["turn"] for turn in kept["turns"]] == [1]


def test_of_many_turns_the_first_and_the_last_are_kept():
    kept = rollout_text(SYMBOLS.reader, played([[5]] * 40, [0.0] * 40, "too_many_turns"))["turns"]
    assert [turn.get("turn", turn) for turn in kept] == [*range(1, 7), {"left_out": 28}, *range(35, 41)]
    whole = rollout_text(SYMBOLS.reader, played([[5]] * 12, [0.0] * 12, "too_many_turns"))["turns"]
    assert [turn["turn"] for turn in whole] == [*range(1, 13)]


def test_thinking_that_never_ends_has_no_answer_and_without_thinking_all_is_answer():
    rollout = rollout_of("9ak2", truncated=True)
    assert rollout_text(SYMBOLS.reader, rollout)["answer"] == []
    plain = SymbolTokenizer(thinks=False)
    parts = rollout_text(plain.reader, rollout_of("29a", tokenizer=plain))
    assert parts["thinking"] == []
    assert parts["answer"] == [{"text": "29a", "tokens": 4, "version": 7}]


def test_a_character_of_several_tokens_stands_where_its_last_byte_is_written():
    tokens = TEXT.encode("aé✓")  # of 1, 2 and 3 bytes
    found = spans(TEXT.reader, tokens, [1, 1, 2, 2, 3, 3])
    assert [(span["text"], span["tokens"]) for span in found] == [("a", 2), ("é", 2), ("✓", 2)]
    half = spans(TEXT.reader, tokens[:2], [1, 1])
    assert half == [{"text": "a\ufffd", "tokens": 2, "version": 1}]


@pytest.mark.parametrize(
    ("sizes", "most", "ends"),
    [
        ([5, 5, 5, 5], 10, (4, 4)),  # all fits
        ([5, 5, 5, 5], 9, (1, 3)),
        ([1] * 100, 10, (10, 90)),
        ([30, 1, 1, 30], 20, (0, 4)),  # neither end fits
        ([], 10, (0, 0)),
    ],
)
def test_both_ends_of_a_long_part_are_kept(sizes, most, ends):
    assert kept_ends(sizes, most) == ends


def test_a_long_part_says_how_many_tokens_are_left_out_of_its_middle():
    found = spans(TEXT.reader, TEXT.encode("a" * 9000 + "b" * 5000), [1] * 9000 + [2] * 5000)
    assert found == [
        {"text": "a" * END_BYTES, "tokens": END_BYTES, "version": 1},
        {"left_out": 14_000 - 2 * END_BYTES},
        {"text": "b" * END_BYTES, "tokens": END_BYTES, "version": 2},
    ]


@pytest.mark.parametrize(
    ("number", "most", "first", "places"),
    [
        (8, 4, 0, [0, 2, 4, 6]),
        (8, 4, 1, [1, 3, 5, 7]),
        (8, 4, 7, [1, 3, 5, 7]),
        (3, 4, 0, [0, 1, 2]),
        (0, 4, 2, []),
        (10, 4, 0, [0, 2, 5, 7]),
    ],
)
def test_kept_places_are_spread_over_all(number, most, first, places):
    assert evenly_placed(number, most, first) == places


def test_an_evaluation_keeps_the_first_answer_to_the_same_prompts_whatever_order_they_end_in():
    def finished(group, index):
        rollout = rollout_of("9</think>29a", name=f"{group}")
        return Finished(request=Request(prompt=rollout.prompt, group=group, index=index, seed=0), rollout=rollout)

    asked = [finished(group, index) for group in range(8) for index in range(2)]
    right = [Judgement("right" if one.request.group == 2 else "wrong") for one in asked]
    kept = partial(kept_of_evaluation, SYMBOLS.reader, tiny_recipe(), make_task(tiny_recipe().tasks[0], SYMBOLS))
    found = kept(asked, right)
    assert [(one["prompt_id"], one["verdict"], one["reward"], one["tokens"]) for one in found] == [
        ("0", "wrong", -1.0, 6),
        ("2", "right", 1.0, 6),
        ("4", "wrong", -1.0, 6),
        ("6", "wrong", -1.0, 6),
    ]
    assert {one["right_answer"] for one in found} == {"29a"}
    assert kept(asked[::-1], right[::-1]) == found


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("29a", "29a"),
        ("a" * 2 * END_BYTES, "a" * 2 * END_BYTES),
        ("é" * (END_BYTES + 1), "é" * (END_BYTES // 2) + " …"),  # of two bytes each
    ],
)
def test_a_long_right_answer_is_cut_between_characters(text, kept):
    assert kept_beginning(text) == kept
