"""The program-like synthetic task: its interpreter against Python's own, its split, its judge."""

from itertools import cycle, product

import numpy as np
import pytest
from pydantic import ValidationError

from scalerl.recipe import Modular
from scalerl.rollout import Prompt
from scalerl.tasks import make_task
from scalerl.tasks.modular import run
from scalerl.tasks.split import draw_split
from scalerl.tokens import CharacterTokenizer, SymbolTokenizer

SMALL = Modular(train_prompts=300, validation_prompts=200)
DIGITS = "0123456789abcdefghijklmnopqrstu"


@pytest.fixture(scope="module")
def task():
    return make_task(SMALL, SymbolTokenizer())


def numbers(text):
    return [DIGITS.index(symbol) for symbol in text]


def python_of(program):
    """The program as a Python expression of v."""
    text, i = "v", 0
    while i < len(program):
        if program[i] == "y":
            text, i = f"({text})**2", i + 1
        else:
            text, i = f"({text}){'+' if program[i] == 'w' else '*'}{DIGITS.index(program[i + 1])}", i + 2
    return text


@pytest.mark.parametrize("program", ["w3", "x5", "y", "x3w2", "yw1y", "x2yw4x3", "yyyyyy", "w0x0"])
def test_programs_run_as_python_would(program):
    expected = [eval(python_of(program), {"v": v}) % 17 for v in range(17)]
    assert run(program, list(range(17)), 17) == expected


@pytest.mark.parametrize("text", ["", "w", "3", "z3", "w3x", "wh", "ww", "w3 y", "Y", "w:", "w3</think>y"])
def test_what_is_no_program_runs_nowhere(text):
    assert run(text, [1, 2], 17) is None


def test_no_prompt_is_in_both_splits_and_there_are_enough_distinct_ones(task):
    train, validation = ({prompt.id for prompt in split} for split in (task.train, task.validation))
    assert not train & validation
    assert (len(train), len(validation)) == (300, 200)


def test_inputs_are_five_distinct_numbers_below_the_modulus(task):
    for prompt in (*task.train, *task.validation):
        inputs, outputs = (numbers(part) for part in prompt.id.split(":"))
        assert inputs == sorted(set(inputs))
        assert len(inputs) == len(outputs) == 5
        assert max(inputs + outputs) < 17
        assert prompt.answer == (tuple(inputs), tuple(outputs))


def test_difficulty_is_the_length_of_the_shortest_program(task):
    operations = [f"w{c}" for c in DIGITS[1:17]] + [f"x{c}" for c in DIGITS[2:17]] + ["y"]
    for prompt in task.validation[:12]:
        inputs, outputs = (numbers(part) for part in prompt.id.split(":"))
        for length in (1, 2):
            programs = map("".join, product(operations, repeat=length))
            shortest = any(run(program, inputs, 17) == outputs for program in programs)
            assert shortest == (prompt.difficulty <= length)
            if shortest:
                break


def test_all_difficulties_are_there_in_about_equal_shares(task):
    shares = [sum(prompt.difficulty == d for prompt in task.train) / 300 for d in (1, 2, 3)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.06)


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ("x3w2</think>x3w2", "right"),
        ("</think>w2x3w11", "unparsable"),  # the last 1 is no operation
        ("</think>x3w1w1", "right"),  # another program with the same values
        ("</think>w4", "wrong"),
        ("</think>x3w", "unparsable"),
        ("</think>", "unparsable"),
        ("x3w2", "unparsable"),
    ],
)
def test_the_judge_runs_the_program(task, response, status):
    # Times 3 plus 2 modulo 17: 0 -> 2, 1 -> 5, 2 -> 8, 3 -> 11, 10 -> 32 - 17 = 15.
    prompt = Prompt(
        task="modular", id="0123a:258bf", tokens=(), answer=((0, 1, 2, 3, 10), (2, 5, 8, 11, 15)), difficulty=2
    )
    tokens = [*SymbolTokenizer().encode(response), SymbolTokenizer().eos_ids[0]]
    assert task.judge(prompt, tokens).outcome == status
    assert task.judge(prompt, tokens[:-1]).outcome == "unparsable"  # cut off


def test_demonstrations_without_noise_are_right_and_with_it_follow_their_draft(task):
    rng = np.random.default_rng(0)
    for _ in range(200):
        prompt, response = task.demonstrate(rng, noise=0.0)
        assert prompt in task.train
        assert task.judge(prompt, list(response)).outcome == "right"
    outcomes = []
    for _ in range(200):
        prompt, response = task.demonstrate(rng, noise=0.3)
        draft, answer = SymbolTokenizer().decode(response).split("</think>")
        assert draft == answer
        outcomes.append(task.judge(prompt, list(response)).outcome)
    assert set(outcomes) == {"right", "wrong", "unparsable"}


def test_prompts_depend_on_neither_chance_nor_tokenizer(task):
    other = make_task(SMALL, CharacterTokenizer())
    assert [p.id for p in other.train] == [p.id for p in task.train]


@pytest.mark.parametrize("settings", [{"modulus": 13}, {"modulus": 18}, {"min_operations": 3, "max_operations": 2}])
def test_small_or_composite_moduli_are_refused(settings):
    with pytest.raises(ValidationError):
        Modular(**settings)


def test_more_prompts_than_there_are_is_an_error_and_not_a_search_without_end():
    twenty = [Prompt(task="modular", id=f"{i}", tokens=(), answer="", difficulty=1) for i in range(20)]
    with pytest.raises(ValueError, match=r"task 'modular': too few distinct prompts .* ask for fewer"):
        draw_split({"train": 30, "validation": 1}, cycle(twenty), "modular")
