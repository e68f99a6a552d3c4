"""A task whose problems are text: deduplicated, split by the hash of their ids, asked and judged as text.

Problems come from files (`file_task`), from a library that makes them (`reasoning_gym`), or from a user's own function.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalerl.errors import Rejected
from scalerl.recipe import CustomTask, FileSettings, ReasoningGym
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.asked import PromptText, TemplateFault
from scalerl.tasks.files import TaskRow, is_missing
from scalerl.tasks.left_out import LeftOut, Reason, UnreadableRows, reasons_text
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.same_problem import problem_key
from scalerl.tasks.split import position
from scalerl.tasks.task import Written
from scalerl.tokens import Tokenizer
from scalerl.tokens.reader import END_THINK, THINK


class UnusableError(Rejected):
    """A problem that no verifier here can judge; it is left out and counted."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One parsed row: `Problem(question="2+2?", asked=PromptText(...), answer="4", thought="2 and 2 are 4")`."""

    question: str
    """Question; with the other shown columns, the text hashed for the id, unless a column gives the id."""
    asked: PromptText
    """Text of the prompt."""
    answer: Any
    """Right answer, as the judge needs it."""
    thought: str | None = None
    """Written solution; None if there is none to demonstrate."""
    response: str = ""
    """End of a demonstration, after the thought."""
    key: str = ""
    """Key shared by variants of one problem; empty means the normal form of the question."""
    id: str | None = None
    """Id that a column gives; None is the hash of the question."""
    difficulty: float = 0.0

    @property
    def identity(self) -> str:
        """Question and other shown columns."""
        return "\n".join([self.question, *self.asked.columns.values()])

    @property
    def normal_form(self) -> str:
        """Text shared by variants of one problem with the same columns."""
        return "\n".join([self.key or problem_key(self.question), *map(problem_key, self.asked.columns.values())])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A problem in use, and its place."""

    prompt: Prompt
    problem: Problem
    where: str
    key: str
    """Normal form (`scalerl.tasks.same_problem`)."""


TextSettings = FileSettings | ReasoningGym | CustomTask
TaskRows = Iterable[TaskRow | LeftOut]


class TextTask:
    """Problems as text, with a judge of answers as text.

    `rows` are split by the hash of their ids. `held_out_rows` are all held out, and read first: a problem of `rows`
    that they have too is not trained on.
    """

    def __init__(
        self,
        settings: TextSettings,
        tokenizer: Tokenizer,
        *,
        rows: TaskRows,
        held_out_rows: TaskRows = (),
        read: Callable[[TaskRow], Problem],
        judge: Callable[[str, Any], Judgement],
        num_judges: int,
        notes: Sequence[str] = (),
    ) -> None:
        self.notes = tuple(notes)
        """Notes for runs and checks on how the file was read."""
        self.name, self.num_judges = settings.title, num_judges
        self.settings, self.tokenizer = settings, tokenizer
        self._read, self._judge = read, judge
        self.left_out: list[LeftOut] = []
        """TaskRows that are not used, in the order in which they were found."""
        self._newly: list[str] = []
        self.never_shown: Counter[str] = Counter()
        """Typical context columns that no prompt shows, with the number of rows that have a value."""
        self.unreadable: list[LeftOut] = []
        """TaskRows that make the file unusable; call `refuse_unreadable` before training."""
        train, held_out = self._split(rows, held_out_rows)
        self._use(train, held_out)
        self._written = {
            entry.prompt.id: Written(
                where=entry.where,
                text=entry.problem.asked.text,
                answer=entry.problem.response or None,
                thought=entry.problem.thought,
            )
            for entry in (*train, *held_out)
        }

    def _use(self, train: Sequence[Entry], held_out: Sequence[Entry]) -> None:
        """Use these problems as the task's; raises ValueError if too few are left."""
        lacks_training = not train and self.settings.held_out_share < 1
        if not held_out or lacks_training:
            self.refuse_unreadable()
            reasons = ""
            if self.left_out:
                first = self.left_out[0]
                reasons = f"; left out: {reasons_text(self.left_out)} (the first is {first.where}: {first.detail})"
            raise ValueError(
                f"task {self.name!r}: {len(train)} problems to train on and {len(held_out)} held out{reasons}; change "
                "validation, max_prompt_tokens or the file"
            )
        self.train_entries, self.held_out_entries = tuple(train), tuple(held_out)
        self.train = tuple(entry.prompt for entry in train)
        self.validation = tuple(entry.prompt for entry in held_out)
        self._demonstrations = [(entry.prompt, entry.problem) for entry in train if entry.problem.thought is not None]

    def refuse_unreadable(self) -> None:
        """Raises UnreadableRows, which names them all, if a row of the file cannot be used."""
        if self.unreadable:
            raise UnreadableRows(self.unreadable)

    def leave_out(self, rows: Mapping[str, LeftOut]) -> None:
        """Stop using the training problems with these ids, also as demonstrations."""
        self.left_out += rows.values()
        self._newly += rows
        self._use([entry for entry in self.train_entries if entry.prompt.id not in rows], self.held_out_entries)

    @property
    def newly_left_out(self) -> tuple[str, ...]:
        """Ids of problems that repeat or vary others of this or another file; empty without repetitions."""
        return tuple(sorted(self._newly))

    def _split(self, rows: TaskRows, held_out_rows: TaskRows) -> tuple[list[Entry], list[Entry]]:
        """Disjoint training and held-out problems."""
        seen = dict[str, Entry]()
        held_out = list(self._entries(held_out_rows, seen, "duplicate"))
        both = list(self._entries(rows, seen, "held out"))
        share = self.settings.held_out_share
        held_out += [entry for entry in both if position(entry.prompt.id) < share]
        rest = [entry for entry in both if position(entry.prompt.id) >= share]
        if clash := {entry.prompt.id for entry in rest} & {entry.prompt.id for entry in held_out}:
            raise ValueError(
                f"task {self.name!r}: id {min(clash)!r} has different questions in the two files; remove `id` to "
                "use the hash of the question"
            )
        return rest, held_out

    def _entries(self, rows: TaskRows, seen: dict[str, Entry], again: Reason) -> Iterator[Entry]:
        """Problems of the rows, each once and without those in `seen`, which grows.

        `again` is the reason for leaving out a problem that earlier rows have.
        """
        ids, earlier = dict[str, str](), frozenset(seen)
        for row in rows:
            if isinstance(row, LeftOut):
                self.unreadable.append(row)
                continue
            try:
                entry = self._entry(row)
            except TemplateFault:
                raise
            except UnusableError as error:
                self._leave_out(row, "cannot be judged", str(error))
                continue
            except ValueError as error:
                self._leave_out(row, "unreadable", str(error))
                continue
            self.never_shown.update(about_but_not_shown(row, entry.problem))
            if (other := seen.get(entry.key)) is not None:
                is_same = other.problem.identity == entry.problem.identity
                detail = f"{'the same problem as' if is_same else 'a variant of'} {other.where}"
                answers = entry.problem.answer, other.problem.answer
                if all(isinstance(one, str) for one in answers) and answers[0] != answers[1]:
                    detail += f", whose answer is {answers[1]!r:.40}, here {answers[0]!r:.40}"
                reason = again if entry.key in earlier else "duplicate"
                self._leave_out(row, reason, detail, same_as=other.where)
                if not is_same:
                    self._newly.append(entry.prompt.id)
                continue
            seen[entry.key] = entry
            most, length = self.settings.max_prompt_tokens, len(entry.prompt.tokens)
            if length > most:
                self._leave_out(row, "too long", f"its prompt has {length:,} tokens; max_prompt_tokens is {most:,}")
                continue
            name = entry.prompt.id
            if name in ids:
                detail = f"id {name!r} already belongs to {ids[name]}; every problem needs its own id"
                self._leave_out(row, "unreadable", detail)
                continue
            ids[name] = row.where
            yield entry

    def _entry(self, row: TaskRow) -> Entry:
        problem = _with_thought_apart(self._read(row))
        prompt = Prompt(
            task=self.name,
            id=hashlib.sha256(problem.identity.encode()).hexdigest()[:16] if problem.id is None else problem.id,
            tokens=self.tokenizer.prompt(problem.asked.text),
            answer=problem.answer,
            difficulty=problem.difficulty,
        )
        return Entry(prompt=prompt, problem=problem, where=row.where, key=problem.normal_form)

    def _leave_out(self, row: TaskRow, reason: Reason, detail: str, same_as: str = "") -> None:
        """Keep the reason, without the row's place at the start of `detail`, as in error messages."""
        detail = detail.removeprefix(f"{row.where}: ")
        rows = self.unreadable if reason == "unreadable" else self.left_out
        rows.append(LeftOut(where=row.where, reason=reason, detail=detail, same_as=same_as))

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Judge the text after the first end of thinking; unparsable if thinking never ends."""
        answer = self.tokenizer.reader.answer(response)
        return Judgement("unparsable") if answer is None else self._judge(answer.text, prompt.answer)

    def written(self, prompt: Prompt) -> Written:
        """The prompt's row, and the answer of a demonstration."""
        return self._written[prompt.id]

    @property
    def has_demonstrations(self) -> bool:
        """True if there is a written solution to demonstrate."""
        return bool(self._demonstrations)

    def demonstrations(self) -> list[tuple[Prompt, tuple[int, ...]]]:
        """Every written solution as a demonstration without errors."""
        return [
            (prompt, demonstrated_solution(self.tokenizer, problem.thought or "", problem.response))
            for prompt, problem in self._demonstrations
        ]

    def stop_demonstrating(self, ids: Container[str]) -> None:
        """Stop demonstrating the solutions of these problems."""
        self._demonstrations = [(prompt, problem) for prompt, problem in self._demonstrations if prompt.id not in ids]

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A written solution as the thought, with error probability `noise` per character, then the answer.

        Without thinking the solution is the first part of the answer.
        """
        prompt, problem = self._demonstrations[int(rng.integers(len(self._demonstrations)))]
        thought = list(problem.thought or "")
        for i in range(len(thought)):
            if rng.random() < noise:
                thought[i] = thought[int(rng.integers(len(thought)))]
        return prompt, demonstrated_solution(self.tokenizer, "".join(thought), problem.response)


ABOUT = ("context", "contexts", "passage", "article", "paragraph", "document", "story", "background", "premise", "body")
ABOUT += ("input_format", "output_format")
"""Usual lower-case names of columns without which a question is incomplete."""


def _with_thought_apart(problem: Problem) -> Problem:
    """The problem whose solution has no marks of thinking; what follows the first end belongs to the response."""
    if problem.thought is None or not (THINK in problem.thought or END_THINK in problem.thought):
        return problem
    thought, _, rest = problem.thought.replace(THINK, "").partition(END_THINK)
    answer = rest.replace(END_THINK, "").strip()
    return replace(problem, thought=thought.strip(), response=f"{answer}\n\n{problem.response}".lstrip())


def about_but_not_shown(row: TaskRow, problem: Problem) -> Iterator[str]:
    """Context columns of the row whose text the prompt does not contain."""
    for name, value in row.values.items():
        if name.lower() not in ABOUT or is_missing(value) or value in ("", problem.thought):
            continue
        is_column = any(shown.partition(".")[0] == name for shown in problem.asked.columns)
        if not (is_column or (isinstance(value, str) and value.strip() in problem.asked.text)):
            yield name
