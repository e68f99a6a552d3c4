"""The protocol of a task: its prompts, the judge of their answers, and demonstrations."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from scalerl.errors import Rejected
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.written import Written


class Task(Protocol):
    """One source of prompts and the judge of their answers."""

    name: str
    train: tuple[Prompt, ...]
    validation: tuple[Prompt, ...]
    num_judges: int
    """Answers judged at a time; above 1 `judge` is called from threads."""

    @property
    def newly_left_out(self) -> tuple[str, ...]:
        """Ids of problems that versions up to 413bb1f used; a warm start or a checkpoint of theirs does not fit."""
        ...

    @property
    def has_demonstrations(self) -> bool:
        """Whether `demonstrate` has any to give."""
        ...

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Judge the token ids of one response, thinking part included."""
        ...

    def written(self, prompt: Prompt) -> Written:
        """What is written of one of its prompts."""
        ...

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """One training prompt and a written response; `noise` is the chance of an error at each place of its draft."""
        ...


class TaskError(Rejected):
    """A task cannot be built, or has no demonstrations to start from; `rows` are those at fault."""

    def __init__(self, message: str, rows: Sequence[LeftOut] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)
