"""Write a program that maps five numbers to five others, modulo a prime, thinking first.

    prompt    0137a:25b6f<think>      0 must become 2, 1 must become 5, ... modulo 17
    response  x3w2</think>x3w2<eos>   a draft, then the program: times 3, plus 2

A program is a sequence of operations on a single number: `wC` adds C, `xC` multiplies by C, `y` squares. A program is
judged by running it on the five inputs; any program that maps them is right. Difficulty is the number of operations of
the shortest such program. Numbers are the symbols 0 to 9 and a to u.
"""

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from scalerl.recipe import Modular
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.responses import demonstrated, ended_answer
from scalerl.tasks.split import draw_split
from scalerl.tasks.task import Written
from scalerl.tokens import Tokenizer
from scalerl.tokens.symbols import COLON, SYMBOLS

ADD, MULTIPLY, SQUARE = "wxy"
NUM_INPUTS = 5
_SHORTENED = re.compile(f"{ADD}{ADD}|{MULTIPLY}{MULTIPLY}|{ADD}{MULTIPLY}{ADD}|{MULTIPLY}{ADD}{MULTIPLY}")
"""Sequences that fewer operations of the same kinds can replace; other shorter programs are found by trying."""


class ModularTask:
    """Prompts of all numbers of operations in equal shares, split by hash: one residue class in eight is held out."""

    num_judges = 1
    has_demonstrations = True
    newly_left_out: tuple[str, ...] = ()

    def __init__(self, settings: Modular, tokenizer: Tokenizer) -> None:
        self.name, self.settings, self.tokenizer = settings.title, settings, tokenizer
        m = settings.modulus
        self._operations = [f"{ADD}{c}" for c in SYMBOLS[1:m]] + [f"{MULTIPLY}{c}" for c in SYMBOLS[2:m]] + [SQUARE]
        self._shorter = {count: self._values_of_all(count) for count in range(1, settings.max_operations)}
        self._programs: dict[str, str] = {}
        """Program that each prompt was made from, by id."""
        wanted = {"train": settings.train_prompts, "validation": settings.validation_prompts}
        self.train, self.validation = draw_split(wanted, self._candidates(), settings.title)

    def _values_of_all(self, count: int) -> NDArray[np.int64]:
        """Results of every program of `count` operations for every number, [programs, modulus]."""
        inputs = list(range(self.settings.modulus))
        programs = map("".join, product(self._operations, repeat=count))
        values = [run(program, inputs, self.settings.modulus) or [] for program in programs]
        return np.unique(np.array(values), axis=0)

    def _candidates(self) -> Iterator[Prompt]:
        """Endless prompts, with all numbers of operations in turn; none has a shorter program than its own."""
        rng = np.random.default_rng(0)
        lengths = range(self.settings.min_operations, self.settings.max_operations + 1)
        turn = 0
        while True:
            length = lengths[turn % len(lengths)]
            program = "".join(self._operations[i] for i in rng.integers(len(self._operations), size=length))
            if _SHORTENED.search("".join(symbol for symbol in program if symbol in ADD + MULTIPLY + SQUARE)):
                continue
            inputs = sorted(rng.permutation(self.settings.modulus)[:NUM_INPUTS].tolist())
            outputs = run(program, inputs, self.settings.modulus)
            assert outputs is not None
            if outputs == inputs or self._is_shorter(inputs, outputs, length):
                continue
            turn += 1
            text = written(inputs) + COLON + written(outputs)
            self._programs.setdefault(text, program)
            yield Prompt(
                task=self.name,
                id=text,
                tokens=self.tokenizer.prompt(text),
                answer=(tuple(inputs), tuple(outputs)),
                difficulty=length,
            )

    def _is_shorter(self, inputs: list[int], outputs: list[int], length: int) -> bool:
        """True if a program of fewer than `length` operations maps them too."""
        tables = (table for count, table in self._shorter.items() if count < length)
        return any(bool((table[:, inputs] == outputs).all(axis=1).any()) for table in tables)

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Right if a program that maps all inputs, and the end of the sequence, follow the thinking part."""
        answer = ended_answer(self.tokenizer, response)
        if answer is None:
            return Judgement("unparsable")
        inputs, outputs = prompt.answer
        found = run(answer.text, list(inputs), self.settings.modulus)
        if found is None:
            return Judgement("unparsable")
        return Judgement("right" if found == list(outputs) else "wrong")

    def written(self, prompt: Prompt) -> Written:
        """The prompt itself and its program."""
        program = self._programs[prompt.id]
        return Written(where=f"task {self.name}, prompt {prompt.id}", text=prompt.id, answer=program)

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A program as draft and answer, symbols replaced by others of the program with probability `noise`."""
        prompt = self.train[int(rng.integers(len(self.train)))]
        program = self._programs[prompt.id]
        draft = [program[int(rng.integers(len(program)))] if rng.random() < noise else symbol for symbol in program]
        return prompt, demonstrated(self.tokenizer, "".join(draft), "".join(draft))


def run(program: str, inputs: list[int], modulus: int) -> list[int] | None:
    """Results of a program for each input: `run("x3w2", [0, 1], 31)` is [2, 5]; None for an invalid program."""
    values, rest = list(inputs), iter(program)
    if not program:
        return None
    for operation in rest:
        if operation == SQUARE:
            values = [value * value % modulus for value in values]
            continue
        number = SYMBOLS.find(next(rest, "none"))
        if operation not in (ADD, MULTIPLY) or not 0 <= number < modulus:
            return None
        values = [(value + number if operation == ADD else value * number) % modulus for value in values]
    return values


def written(numbers: list[int]) -> str:
    """Numbers as symbols: `written([0, 10, 30])` is "0au"."""
    return "".join(SYMBOLS[number] for number in numbers)
