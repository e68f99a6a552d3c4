"""Episodes as a task: a prompt is the start of an episode, and the environment judges what follows.

All starts are asked for when the task is made, so a missing package, a rejected setting or an environment that hangs is
known before training.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from scalerl.environments.hosting import Hosting
from scalerl.environments.programs import Programs
from scalerl.environments.protocol import Reply, Start
from scalerl.errors import Internal
from scalerl.recipe.episodes import HELD_OUT_FROM, AgentProgram, Episodes
from scalerl.recipe.file_hash import content_sha256
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.files import read_task_rows
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.split import position
from scalerl.tasks.task import TaskError, Written
from scalerl.tokens import Tokenizer

STARTED_TOGETHER = 64
"""Episodes started together; the first that fails stops the others."""
NUM_DEMONSTRATED = 256
"""Training episodes that are played for demonstrations."""


@dataclass(frozen=True, kw_only=True)
class Demonstrated:
    """One turn of a demonstrated episode, with all before it as its prompt."""

    prompt: Prompt
    text: str


class EpisodesTask:
    """Training and held-out episodes of one environment."""

    num_judges = 1
    newly_left_out: tuple[str, ...] = ()

    def __init__(self, settings: Episodes, tokenizer: Tokenizer) -> None:
        self.name, self.settings, self.tokenizer = settings.title, settings, tokenizer
        if settings.turns > 1:
            self._refuse_template()
        held_out, trained = episode_starts(settings)
        if isinstance(settings.environment, AgentProgram):
            self._try(settings.environment, held_out[0])
            self.validation, self.train = (tuple(map(self._of_program, some)) for some in (held_out, trained))
            self._demonstrated = ()
            return
        hosting = Hosting(settings)
        try:
            self.validation = self._prompts(hosting, held_out)
            self.train = self._prompts(hosting, trained)
            self._demonstrated = self._demonstrations(hosting)
        finally:
            hosting.close()

    def _refuse_template(self) -> None:
        """Raises TaskError for a chat template that writes no conversation, or not the one that is sampled."""
        try:
            self.tokenizer.next_turn("", after=self.tokenizer.eos_ids[0])
            rewritten = "" if self.settings.history == "keep" else self.tokenizer.rewritten_turns
        except ValueError as error:
            raise TaskError(f"task {self.name!r}: {error}") from None
        if rewritten:
            raise TaskError(f"task {self.name!r}: {rewritten}; set history: keep to keep each turn as it was sampled")

    def _try(self, program: AgentProgram, start: Start) -> None:
        """Start a program; raises TaskError if its code has changed or it ends before it asks the policy."""
        if program.hashes() != program.folder_sha256:
            raise TaskError(
                f"task {self.name!r}: {', '.join(program.files)} in {program.folder} has changed since the run was "
                f"planned; restore the old content, or restart the sweep: new content makes new runs"
            )
        programs = Programs(self.settings, self.tokenizer, limit=self.settings.tokens_per_turn or 1, temperature=None)
        try:
            programs.start(0, start)
            [(_, reply)] = programs.replies()
        finally:
            programs.close()
        if isinstance(reply, Reply):
            raise TaskError(f"task {self.name!r}: {' '.join(program.command)} did not ask the policy: {reply.text}")

    def _of_program(self, start: Start) -> Prompt:
        """A prompt without tokens: only its program knows how the episode begins."""
        said = json.dumps({"seed": start.seed, "row": dict(start.row)}, default=str)
        answer = replace(start, text=said)
        return Prompt(task=self.name, id=f"{start.seed}", tokens=(), answer=answer, difficulty=0.0)

    def _prompts(self, hosting: Hosting, starts: Sequence[Start]) -> tuple[Prompt, ...]:
        """Prompts of these episodes; raises TaskError for one that does not start, or is too long."""
        prompts: list[Prompt] = []
        rest = iter(enumerate(starts))
        while several := dict(islice(rest, STARTED_TOGETHER)):
            for key, start in several.items():
                hosting.start(key, start)
            for key, reply in hosting.replies():
                prompts.append(self._prompt(replace(several[key], text=reply.text), reply))
                hosting.forget(key)
        return tuple(prompts)

    def _prompt(self, start: Start, reply: Reply) -> Prompt:
        name = f"{start.seed}"
        if reply.end is not None:
            longer = "; time_limit_s may give it longer" if reply.end == "timed_out" else ""
            raise TaskError(f"task {self.name!r}: the episode of seed {name} did not start: {reply.text}{longer}")
        try:
            tokens = self.tokenizer.prompt(reply.text)
        except ValueError as error:
            raise TaskError(f"task {self.name!r}: the first text of seed {name}: {error}") from None
        return Prompt(task=self.name, id=name, tokens=tokens, answer=start, difficulty=0.0)

    def _demonstrations(self, hosting: Hosting) -> tuple[Demonstrated, ...]:
        """Turns of training episodes that the environment plays itself; empty if it knows no answers."""
        playing = {int(prompt.id): prompt for prompt in self.train[:NUM_DEMONSTRATED]}
        for key, prompt in playing.items():
            hosting.start(key, prompt.answer)
        hosting.replies()
        found: list[Demonstrated] = []
        turns = 0
        while playing and turns < self.settings.turns:
            for key in playing:
                hosting.demonstrate(key)
            answers = dict(hosting.replies())
            playing = {key: prompt for key, prompt in playing.items() if answers[key].end is None}
            for key, prompt in playing.items():
                self._played(prompt, answers[key].text)
                found.append(Demonstrated(prompt=prompt, text=answers[key].text))
                hosting.act(key, answers[key].text)
            turns += 1
            replies = dict(hosting.replies())
            playing = {
                key: self._after(prompt, answers[key].text, replies[key].text, turns)
                for key, prompt in playing.items()
                if replies[key].end is None
            }
        return tuple(found)

    def _played(self, prompt: Prompt, answer: str, said: str | None = None) -> tuple[int, ...]:
        """Tokens of a demonstrated turn, and of what was said to it; raises TaskError for text that the tokenizer
        lacks."""
        try:
            response = demonstrated_solution(self.tokenizer, "", answer)
            return response if said is None else response + self.tokenizer.next_turn(said, after=response[-1])
        except ValueError as error:
            raise TaskError(f"task {self.name!r}: seed {prompt.id}, played as a demonstration: {error}") from None

    def _after(self, prompt: Prompt, answer: str, said: str, turns: int) -> Prompt:
        """Prompt of the next turn of a demonstrated episode."""
        tokens = (*prompt.tokens, *self._played(prompt, answer, said))
        return replace(prompt, id=f"{prompt.id.partition('#')[0]}#{turns}", tokens=tokens)

    @property
    def has_demonstrations(self) -> bool:
        """True if the environment knows acceptable answers."""
        return bool(self._demonstrated)

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """One turn of a demonstrated episode, each character of its answer replaced with probability `noise`."""
        one = self._demonstrated[int(rng.integers(len(self._demonstrated)))]
        text = list(one.text)
        for i in range(len(text)):
            if rng.random() < noise:
                text[i] = text[int(rng.integers(len(text)))]
        return one.prompt, demonstrated_solution(self.tokenizer, "", "".join(text))

    def written(self, prompt: Prompt) -> Written:
        """The first text of the episode; there is no right answer to it."""
        return Written(where=f"task {self.name}, seed {prompt.id}", text=prompt.answer.text, answer=None)

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Never called: the environment judges, while an episode runs."""
        raise Internal(f"task {self.name!r}: an episode is judged by its environment")


def episode_starts(settings: Episodes) -> tuple[list[Start], list[Start]]:
    """Starts of the held-out episodes and of the training episodes. TaskError if the file has too few rows for both."""
    held, train = settings.validation, settings.train
    if settings.path is None:
        return [Start(seed=HELD_OUT_FROM + i) for i in range(held)], [Start(seed=i) for i in range(train)]
    rows = sorted(_rows(settings), key=lambda row: position(json.dumps(row, sort_keys=True, default=str)))
    if len(rows) < held + train:
        raise TaskError(
            f"task {settings.title!r}: {settings.path} has {len(rows):,} rows, but validation and train take "
            f"{held:,} and {train:,}; lower them"
        )
    starts = [Start(seed=i, row=row) for i, row in enumerate(rows)]
    return starts[:held], starts[held : held + train]


def _rows(settings: Episodes) -> list[Mapping[str, Any]]:
    """Rows of the task's file; raises TaskError for one that cannot be read, or a file that has changed."""
    path = Path(settings.path or "")
    if content_sha256(path, "path") != settings.path_sha256:
        raise TaskError(
            f"task {settings.title!r}: {path} has changed since the run was planned; restore the old content, or "
            f"restart the sweep: new content makes new runs"
        )
    rows = list(read_task_rows(path, None))
    if unreadable := [row for row in rows if isinstance(row, LeftOut)]:
        raise TaskError(f"task {settings.title!r}: {unreadable[0].where}: {unreadable[0].detail}", unreadable)
    return [row.values for row in rows if not isinstance(row, LeftOut)]
