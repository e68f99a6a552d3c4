"""What is trained on and evaluated: prompts with stable ids, a verifier, and demonstrations for the warm start.

A task makes all its prompts from its own settings alone, never from the run's seed, and splits them by the hash of
their id, so every run of a scale trains and validates on the same prompts and no prompt is in both.

    k_smallest.py   the k smallest symbols of a list in order, after a written draft
"""

from typing import Protocol

import numpy as np

from scalerl.batch import Outcome, Prompt
from scalerl.recipe import KSmallest
from scalerl.tasks.k_smallest import KSmallestTask
from scalerl.tokens import Tokenizer


class Task(Protocol):
    """One source of prompts and the judge of their answers."""

    name: str
    train: tuple[Prompt, ...]
    validation: tuple[Prompt, ...]
    num_judges: int
    """Answers judged at a time; above 1 `verify` is called from threads."""

    def verify(self, prompt: Prompt, response: list[int]) -> Outcome:
        """Judge the token ids of one response, thinking part included."""
        ...

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """One training prompt and a written response; `noise` is the chance of an error at each place of its draft."""
        ...


TASKS = {"k_smallest": KSmallestTask}


def make_task(settings: KSmallest, tokenizer: Tokenizer) -> Task:
    """The task that `settings` describe, its prompts written with `tokenizer`."""
    return TASKS[settings.type](settings, tokenizer)
