"""The protocol of a task: prompts, the judge of their answers, and demonstrations."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from scalerl.errors import Rejected
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.written import Written


class Task(Protocol):
    """A source of prompts and the judge of their answers."""

    name: str
    train: tuple[Prompt, ...]
    validation: tuple[Prompt, ...]
    num_judges: int
    """Number of answers judged at once; above 1, `judge` is called from threads."""

    @property
    def newly_left_out(self) -> tuple[str, ...]:
        """Ids of problems that repeat or vary others of this or another file; they affect the warm start."""
        ...

    @property
    def has_demonstrations(self) -> bool:
        """True if `demonstrate` has demonstrations."""
        ...

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Judge the token ids of one response, including its thinking part."""
        ...

    def written(self, prompt: Prompt) -> Written:
        """Source, question and right answer of a prompt."""
        ...

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """One training prompt and a written response; `noise` is the probability of an error at each place of its
        draft."""
        ...


class TaskError(Rejected):
    """A task cannot be built, or has no demonstrations; `rows` are the rows at fault."""

    def __init__(self, message: str, rows: Sequence[LeftOut] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)
