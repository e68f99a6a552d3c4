"""A task whose problems stand in a file: read, told apart, split by the hash of their ids, asked and judged as text.

What the columns mean and who judges, the kinds of task say: `mathematics`, `coding`, `choices`, `questions`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalerl.recipe import FileSettings
from scalerl.recipe.content_hash import content_sha256
from scalerl.rollout import Outcome, Prompt
from scalerl.tasks.files import TaskRow, read_rows
from scalerl.tasks.split import after_thinking, position
from scalerl.tokens import Tokenizer


class UnusableError(ValueError):
    """A problem that no verifier of ours can judge; it is left out and counted."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One row understood: `Problem(question="2+2?", text="2+2?\\n\\nPut ...", answer="4", thought="2 and 2 are 4")`."""

    question: str
    text: str
    """What the prompt says."""
    answer: Any
    """What the judge is given."""
    thought: str | None = None
    """A written solution, None where there is nothing to demonstrate."""
    response: str = ""
    """How a demonstration ends, after the thought."""


class FileTask:
    """Problems of one or two files, and a judge of answers given as text."""

    def __init__(
        self,
        settings: FileSettings,
        tokenizer: Tokenizer,
        *,
        read: Callable[[TaskRow], Problem],
        judge: Callable[[str, Any], Outcome],
        num_judges: int,
    ) -> None:
        self.name, self.num_judges = settings.title, num_judges
        self.settings, self.tokenizer = settings, tokenizer
        self._read, self._judge = read, judge
        self._demonstrations: list[tuple[Prompt, Problem]] = []
        self.left_out: Counter[str] = Counter()
        """Problems that are not used, by reason."""
        self.train, self.validation = self._split()
        if self.left_out:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
            print(
                f"task {self.name}: {len(self.train)} + {len(self.validation)} problems; left out: {reasons}",
                flush=True,
            )

    def _split(self) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
        """Training and held-out prompts; no question is in both."""
        settings = self.settings
        held_out: list[tuple[Prompt, Problem]] = []
        if settings.validation_path is not None:
            held_out = list(self._problems("validation_path", settings.validation_split, known=set()))
        known = {problem.question for _, problem in held_out}
        both = list(self._problems("path", settings.split, known=known))
        share = settings.held_out_share
        held_out += [(prompt, problem) for prompt, problem in both if position(prompt.id) < share]
        rest = [(prompt, problem) for prompt, problem in both if position(prompt.id) >= share]
        self._refuse_empty(len(rest), len(held_out))
        if clash := {prompt.id for prompt, _ in rest} & {prompt.id for prompt, _ in held_out}:
            raise ValueError(
                f"task {self.name!r}: id {min(clash)!r} has different questions in the two files; leave `id` out to "
                "use the hash of the question"
            )
        self._demonstrations = [(prompt, problem) for prompt, problem in rest if problem.thought is not None]
        return tuple(prompt for prompt, _ in rest), tuple(prompt for prompt, _ in held_out)

    def _refuse_empty(self, num_train: int, num_held_out: int) -> None:
        lacks_training = num_train == 0 and self.settings.held_out_share < 1
        if num_held_out == 0 or lacks_training:
            raise ValueError(
                f"task {self.name!r}: {num_train} problems to train on and {num_held_out} held out, left out "
                f"{dict(self.left_out)}; change validation, max_prompt_tokens or the file"
            )

    def _problems(self, field: str, split: str | None, known: set[str]) -> Iterator[tuple[Prompt, Problem]]:
        """Those of the file that `field` names whose question is not `known`, each once."""
        path = Path(getattr(self.settings, field))
        rows = read_rows(path, split)
        if path.exists() and content_sha256(path, field) != getattr(self.settings, f"{field}_sha256"):
            raise ValueError(
                f"task {self.name!r}: {path} has changed since the run was planned; restore the old content, or "
                "start the sweep again: new content makes new runs"
            )
        yield from self._usable(rows, known)

    def _usable(self, rows: Iterable[TaskRow], known: set[str]) -> Iterator[tuple[Prompt, Problem]]:
        seen: dict[str, str] = {}
        for row in rows:
            try:
                problem = self._read(row)
            except UnusableError as error:
                if not self.left_out["cannot be judged"]:
                    print(f"task {self.name}: {error}", flush=True)
                self.left_out["cannot be judged"] += 1
                continue
            if problem.question in known:
                self.left_out["asked before"] += 1
                continue
            known.add(problem.question)
            tokens = self.tokenizer.prompt(problem.text)
            if len(tokens) > self.settings.max_prompt_tokens:
                self.left_out[f"over {self.settings.max_prompt_tokens} tokens"] += 1
                continue
            name = self._id(row, problem)
            if name in seen:
                raise ValueError(
                    f"{row.where}: id {name!r} already belongs to {seen[name]}; every problem needs its own id"
                )
            seen[name] = row.where
            yield (
                Prompt(task=self.name, id=name, tokens=tokens, answer=problem.answer, difficulty=self._difficulty(row)),
                problem,
            )

    def _id(self, row: TaskRow, problem: Problem) -> str:
        if self.settings.id is not None:
            return row.text("id", self.settings.id, ())
        return hashlib.sha256(problem.question.encode()).hexdigest()[:16]

    def _difficulty(self, row: TaskRow) -> float:
        if self.settings.difficulty is None:
            return 0.0
        text = row.text("difficulty", self.settings.difficulty, ())
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{row.where}: difficulty is {text!r}; a number is needed") from None

    def verify(self, prompt: Prompt, response: list[int]) -> Outcome:
        """Judge what follows the first end of thinking; unparsable if thinking never ends."""
        answer = after_thinking(response, self.tokenizer.end_think)
        return "unparsable" if answer is None else self._judge(self.tokenizer.decode(answer), prompt.answer)

    @property
    def has_demonstrations(self) -> bool:
        """Whether there is a written solution to start from."""
        return bool(self._demonstrations)

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A written solution as the thought, with chance `noise` of an error at each character; the answer."""
        prompt, problem = self._demonstrations[int(rng.integers(len(self._demonstrations)))]
        thought = list(problem.thought or "")
        for i in range(len(thought)):
            if rng.random() < noise:
                thought[i] = thought[int(rng.integers(len(thought)))]
        tokenizer = self.tokenizer
        draft, answer = tokenizer.encode("".join(thought)), tokenizer.encode(problem.response)
        return prompt, (*draft, *tokenizer.end_think, *answer, tokenizer.eos_ids[0])
