"""The k smallest task: its split, its judge on answers written by hand, its demonstrations."""

import numpy as np
import pytest

from scalerl.recipe import KSmallest
from scalerl.rollout import Prompt
from scalerl.tasks import make_task
from scalerl.tasks.split import held_out
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, ID, SymbolTokenizer

ORDER = "0123456789abcdefghijklmnopqrstuvwxyz"
decode = SymbolTokenizer().decode
PROMPT = Prompt(task="k_smallest", id="3:k9a2", tokens=SymbolTokenizer().prompt("3:k9a2"), answer="29a", difficulty=4)


@pytest.fixture(scope="module")
def task():
    return make_task(KSmallest(), SymbolTokenizer())


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


def test_a_prompt_belongs_to_one_split_whatever_the_sizes(task):
    small = make_task(KSmallest(train_prompts=100, validation_prompts=20), SymbolTokenizer())
    assert all(not held_out(prompt.id) for prompt in (*task.train, *small.train))
    assert all(held_out(prompt.id) for prompt in (*task.validation, *small.validation))
    assert {p.difficulty for p in task.train} == {p.difficulty for p in task.validation} == set(range(5, 13))


def test_the_answer_of_every_prompt_is_its_k_smallest_in_order(task):
    for prompt in (*task.train, *task.validation):
        k, symbols = prompt.id.split(":")
        ranks = [ORDER.index(symbol) for symbol in prompt.answer]
        assert len(ranks) == ORDER.index(k)
        assert ranks == sorted(ranks)
        left_out = [ORDER.index(symbol) for symbol in symbols if symbol not in prompt.answer]
        assert all(rank > ranks[-1] for rank in left_out)
        assert len(left_out) + len(ranks) == len(set(symbols)) == len(symbols) == prompt.difficulty
        assert decode(prompt.tokens) == f"{prompt.id}<think>"


def test_too_few_distinct_prompts_is_an_error():
    with pytest.raises(ValueError, match="too few distinct prompts"):
        make_task(KSmallest(symbols=8, min_length=2, max_length=2, train_prompts=500), SymbolTokenizer())


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ("29a)29a.", "right"),
        (")29a.", "right"),
        ("kkkk)29a.", "right"),  # only what follows the thinking part is judged
        ("29a.)29a.", "right"),
        ("29a)29k.", "wrong"),
        ("29a)29.", "wrong"),
        ("29a)29ak.", "wrong"),
        ("29a)92a.", "wrong"),
        ("29a).", "wrong"),
        ("29a))29a.", "wrong"),
        ("29a)29a)29a.", "wrong"),
        ("29a)29a.k.", "wrong"),
        ("29a)29a..", "wrong"),
        ("29a)29a", "unparsable"),  # truncated
        ("29a)", "unparsable"),
        ("29a29a.", "unparsable"),  # never stopped thinking
        ("29a.", "unparsable"),
        ("", "unparsable"),
        (".", "unparsable"),
    ],
)
def test_the_judge_on_answers_written_by_hand(task, response, status):
    assert task.judge(PROMPT, respond(response)).outcome == status


def test_the_judge_takes_padding_ids_for_wrong_not_for_an_error(task):
    assert task.judge(PROMPT, [*respond("29a)29"), 47, EOS_ID]).outcome == "wrong"


def test_demonstrations_without_noise_are_right_and_of_training_prompts(task):
    rng, train = np.random.default_rng(0), set(task.train)
    kinds = set()
    for _ in range(500):
        prompt, response = task.demonstrate(rng, noise=0.0)
        assert prompt in train
        assert task.judge(prompt, list(response)).outcome == "right"
        thought = decode(response).split("</think>")[0]
        whole = "".join(sorted(prompt.id.split(":")[1]))
        assert thought in (whole, prompt.answer)
        kinds.add(thought == whole)
    assert kinds == {True, False}


def test_noise_makes_drafts_wrong_and_answers_follow_the_draft(task):
    rng = np.random.default_rng(0)
    places = replaced = wrong = 0
    for _ in range(1000):
        prompt, response = task.demonstrate(rng, noise=0.2)
        draft, answer = decode(response).removesuffix("<eos>").split("</think>")
        whole = "".join(sorted(prompt.id.split(":")[1]))
        assert answer == draft[: len(prompt.answer)]
        assert (task.judge(prompt, list(response)).outcome == "right") == (answer == prompt.answer)
        wrong += answer != prompt.answer
        places += len(draft)
        replaced += sum(a != b for a, b in zip(draft, whole, strict=False))
    # A place is redrawn with chance 0.2 among the list's 5 to 12 symbols, so about one time in nine it stays: 0.178.
    assert replaced / places == pytest.approx(0.178, abs=0.012)
    assert 0.4 < wrong / 1000 < 0.7
