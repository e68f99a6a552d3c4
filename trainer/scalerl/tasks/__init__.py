"""What is trained on and evaluated: prompts with stable ids, a verifier, and demonstrations for the warm start.

A task makes all its prompts from its own settings alone, never from the run's seed, and splits them by the hash of
their id, so every run of a scale trains and validates on the same prompts and no prompt is in both.

made here
  k_smallest     the k smallest symbols of a list in order, after a written draft: the math-like one
  modular        a program of one to three operations modulo a prime, judged by running it: the program-like one
in a file, asked and judged as text
  mathematics    GSM8K, MATH, AIME
  coding         MBPP, HumanEval, DeepCoder; code_test_forms: how such files write their tests
  choices        ARC, HellaSwag
  questions      NaturalQuestions, SQuAD
  file_task      what these four have in common; files: JSON lines, Parquet and `datasets` folders row by row
mix              several tasks as one
split            held out by hash
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from scalerl.recipe import AnyTask, Code, KSmallest, Math, Modular, MultipleChoice, Qa
from scalerl.rollout import Outcome, Prompt
from scalerl.sandbox import SandboxUnavailable
from scalerl.tasks.choices import choice_task
from scalerl.tasks.coding import code_task
from scalerl.tasks.k_smallest import KSmallestTask
from scalerl.tasks.mathematics import math_task
from scalerl.tasks.mix import Mix, shares_of
from scalerl.tasks.modular import ModularTask
from scalerl.tasks.questions import qa_task
from scalerl.tokens import Tokenizer


class Task(Protocol):
    """One source of prompts and the judge of their answers."""

    name: str
    train: tuple[Prompt, ...]
    validation: tuple[Prompt, ...]
    num_judges: int
    """Answers judged at a time; above 1 `verify` is called from threads."""

    @property
    def has_demonstrations(self) -> bool:
        """Whether `demonstrate` has any to give."""
        ...

    def verify(self, prompt: Prompt, response: list[int]) -> Outcome:
        """Judge the token ids of one response, thinking part included."""
        ...

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """One training prompt and a written response; `noise` is the chance of an error at each place of its draft."""
        ...


class TaskError(ValueError):
    """A task cannot be built, or has no demonstrations to start from."""


def make_task(settings: AnyTask, tokenizer: Tokenizer) -> Task:
    """The task that `settings` describe, its prompts written with `tokenizer`; TaskError says why it cannot be made."""
    try:
        return _make(settings, tokenizer)
    except (ValueError, SandboxUnavailable) as error:
        raise TaskError(str(error)) from error


def _make(settings: AnyTask, tokenizer: Tokenizer) -> Task:
    match settings:
        case KSmallest():
            return KSmallestTask(settings, tokenizer)
        case Modular():
            return ModularTask(settings, tokenizer)
        case Math():
            return math_task(settings, tokenizer)
        case Code():
            return code_task(settings, tokenizer)
        case MultipleChoice():
            return choice_task(settings, tokenizer)
        case Qa():
            return qa_task(settings, tokenizer)


def make_tasks(settings: Sequence[AnyTask], tokenizer: Tokenizer) -> Task:
    """The only task, or the mix of several."""
    tasks = [make_task(one, tokenizer) for one in settings]
    return tasks[0] if len(tasks) == 1 else Mix(tasks, shares_of(settings, tasks))
