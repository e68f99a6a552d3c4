"""The k-th smallest task: its split, its judge on answers written by hand, its demonstrations."""

import numpy as np
import pytest
from scalerl.batch import Prompt
from scalerl.recipe import KSmallest
from scalerl.tasks import TASKS, make_task
from scalerl.tasks.k_smallest import held_out
from scalerl.tokens import END_THINK_ID, EOS_ID, ID, THINK_ID, decode, encode

PROMPT = Prompt(
    task="k_smallest", id="3:k9a2", tokens=(*encode("3:k9a2"), THINK_ID), answer="a", difficulty=4
)  # 2 < 9 < a < k


@pytest.fixture(scope="module")
def task():
    return make_task(KSmallest())


def respond(text):
    """Token ids of `text`, in which `)` stands for the end of thinking and `.` for the end of the sequence."""
    special = {")": END_THINK_ID, ".": EOS_ID}
    return [special[c] if c in special else ID[c] for c in text]


def test_training_and_validation_share_no_prompt(task):
    train, validation = ({prompt.id for prompt in split} for split in (task.train, task.validation))
    assert not train & validation
    assert not {p.tokens for p in task.train} & {p.tokens for p in task.validation}
    assert (len(train), len(validation)) == (len(task.train), len(task.validation)) == (4096, 256)
    assert len(validation) >= 200


def test_both_splits_hold_all_lengths_about_equally(task):
    for split in (task.train, task.validation):
        share = [sum(prompt.difficulty == n for prompt in split) / len(split) for n in range(5, 13)]
        assert min(share) > 0.08
        assert max(share) < 0.17


def test_a_prompt_belongs_to_one_split_whatever_the_sizes(task):
    small = make_task(KSmallest(train_prompts=100, validation_prompts=20))
    assert all(not held_out(prompt.id) for prompt in (*task.train, *small.train))
    assert all(held_out(prompt.id) for prompt in (*task.validation, *small.validation))


def test_prompts_do_not_depend_on_chance(task):
    again = make_task(KSmallest())
    assert (again.train, again.validation) == (task.train, task.validation)


def test_the_answer_of_every_prompt_is_its_k_smallest(task):
    order = {symbol: rank for rank, symbol in enumerate("0123456789abcdefghijklmnopqrstuvwxyz")}
    for prompt in (*task.train, *task.validation):
        k, symbols = prompt.id.split(":")
        assert sum(order[symbol] <= order[prompt.answer] for symbol in symbols) == order[k]
        assert prompt.answer in symbols
        assert len(set(symbols)) == len(symbols) == prompt.difficulty
        assert decode(prompt.tokens) == f"{prompt.id}<think>"


def test_too_few_distinct_prompts_is_an_error():
    with pytest.raises(ValueError, match="too few distinct prompts"):
        make_task(KSmallest(symbols=8, min_length=2, max_length=2, train_prompts=500))


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ("29a)a.", "right"),
        (")a.", "right"),
        ("kkkk)a.", "right"),  # only the answer is judged
        ("a.)a.", "right"),
        ("29a)k.", "wrong"),
        ("29a)aa.", "wrong"),
        ("29a).", "wrong"),
        ("29a)a)a.", "wrong"),
        ("29a))a.", "wrong"),
        ("29a)a.k.", "wrong"),
        ("29a)a", "unparsable"),  # truncated
        ("29a)", "unparsable"),
        ("29aa.", "unparsable"),  # never stopped thinking
        ("a.", "unparsable"),
        ("", "unparsable"),
        (".", "unparsable"),
    ],
)
def test_the_judge_on_answers_written_by_hand(task, response, status):
    assert task.verify(PROMPT, respond(response)) == status


def test_demonstrations_without_noise_are_right(task):
    rng = np.random.default_rng(0)
    for _ in range(500):
        prompt, response = task.demonstrate(rng, noise=0.0)
        assert task.verify(prompt, list(response)) == "right"
        thought = decode(response).split("</think>")[0]
        symbols = "".join(sorted(prompt.id.split(":")[1]))
        assert thought in (symbols, symbols[: symbols.index(prompt.answer) + 1])


def test_demonstrations_are_of_training_prompts_only(task):
    rng = np.random.default_rng(0)
    train = set(task.train)
    assert all(task.demonstrate(rng, noise=0.5)[0] in train for _ in range(500))


def test_noise_makes_thoughts_wrong_and_answers_follow_the_thought(task):
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(1000):
        prompt, response = task.demonstrate(rng, noise=0.2)
        thought, answer = decode(response).removesuffix("<eos>").split("</think>")
        assert answer == thought["0123456789abc".index(prompt.id[0]) - 1]
        wrong += task.verify(prompt, list(response)) == "wrong"
    # The judged place is replaced with chance 0.2, by the right symbol again one time in 5 to 12: about 17.5 %.
    assert 130 < wrong < 220


def test_the_table_holds_every_task_under_its_own_name():
    for name, task in TASKS.items():
        assert task.name == name
