"""The protocol of a task: prompts, the judge of their answers, and demonstrations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scalerl.errors import Rejected
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.left_out import LeftOut


@dataclass(frozen=True, kw_only=True)
class Written:
    """Written form of a prompt: `Written(where="gsm8k.jsonl:3", text="2+2?\\n\\nPut ...", answer="\\\\boxed{4}")`."""

    where: str
    """File and line; task and prompt if the task generates its prompts."""
    text: str
    """Question put to the policy, before a chat template."""
    answer: str | None
    """Answer that its verifier should judge right after the end of thinking; None if none is written."""
    thought: str | None = None
    """Written solution that the warm start demonstrates before the answer; None if the task has none."""


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
