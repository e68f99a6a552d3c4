"""A task whose problems stand in a file: read, told apart, split by the hash of their ids, asked and judged as text.

What the columns mean and who judges, the kinds of task say: `mathematics`, `coding`, `choices`, `questions`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalerl.errors import Rejected
from scalerl.recipe import FileSettings
from scalerl.recipe.content_hash import content_sha256
from scalerl.rollout import Judgement, Outcome, Prompt
from scalerl.tasks.asked import PromptText, TemplateFault
from scalerl.tasks.files import TaskRow, is_missing, read_task_rows
from scalerl.tasks.left_out import LeftOut, Reason, UnreadableRows, reasons_text
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.same_problem import problem_key
from scalerl.tasks.split import position
from scalerl.tasks.written import Written
from scalerl.tokens import Tokenizer


class UnusableError(Rejected):
    """A problem that no verifier of ours can judge; it is left out and counted."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One row understood: `Problem(question="2+2?", asked=PromptText(...), answer="4", thought="2 and 2 are 4")`."""

    question: str
    """What the id is the hash of, with the columns that are shown beside it, unless a column names the problem."""
    asked: PromptText
    """What the prompt says."""
    answer: Any
    """What the judge is given."""
    thought: str | None = None
    """A written solution, None where there is nothing to demonstrate."""
    response: str = ""
    """How a demonstration ends, after the thought."""
    key: str = ""
    """Equal for variants of one problem; empty takes the normal form of the question."""

    @property
    def identity(self) -> str:
        """The question and the columns that are shown beside it."""
        return "\n".join([self.question, *self.asked.columns.values()])

    @property
    def normal_form(self) -> str:
        """Equal for variants of one problem about the same columns."""
        return "\n".join([self.key or problem_key(self.question), *map(problem_key, self.asked.columns.values())])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A problem that is used, and where it stands."""

    prompt: Prompt
    problem: Problem
    where: str
    key: str
    """Normal form (`scalerl.tasks.same_problem`)."""


class FileTask:
    """Problems of one or two files, and a judge of answers given as text."""

    def __init__(
        self,
        settings: FileSettings,
        tokenizer: Tokenizer,
        *,
        read: Callable[[TaskRow], Problem],
        judge: Callable[[str, Any], Judgement],
        num_judges: int,
        notes: Sequence[str] = (),
    ) -> None:
        self.notes = tuple(notes)
        """What a run and a check say of how the file was read."""
        self.name, self.num_judges = settings.title, num_judges
        self.settings, self.tokenizer = settings, tokenizer
        self._read, self._judge = read, judge
        self.left_out: list[LeftOut] = []
        """Every row that is not used, in the order in which this was found."""
        self._newly: list[str] = []
        self.never_shown: Counter[str] = Counter()
        """Columns that a question is usually about and that no prompt shows, with the number of rows that have one."""
        self.unreadable: list[LeftOut] = []
        """Rows that refuse the file: whoever trains on the task calls `refuse_unreadable` first."""
        train, held_out = self._split()
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
        """Take these as the task's problems; ValueError if too few are left."""
        lacks_training = not train and self.settings.held_out_share < 1
        if not held_out or lacks_training:
            self.refuse_unreadable()
            reasons = f"; left out: {reasons_text(self.left_out)}" if self.left_out else ""
            raise ValueError(
                f"task {self.name!r}: {len(train)} problems to train on and {len(held_out)} held out{reasons}; change "
                "validation, max_prompt_tokens or the file"
            )
        self.train_entries, self.held_out_entries = tuple(train), tuple(held_out)
        self.train = tuple(entry.prompt for entry in train)
        self.validation = tuple(entry.prompt for entry in held_out)
        self._demonstrations = [(entry.prompt, entry.problem) for entry in train if entry.problem.thought is not None]

    def refuse_unreadable(self) -> None:
        """Raise UnreadableRows, which names them all, if a row of the file cannot be used."""
        if self.unreadable:
            raise UnreadableRows(self.unreadable)

    def leave_out(self, rows: Mapping[str, LeftOut]) -> None:
        """Neither train on nor demonstrate the training problems with these ids."""
        self.left_out += rows.values()
        self._newly += rows
        self._use([entry for entry in self.train_entries if entry.prompt.id not in rows], self.held_out_entries)

    @property
    def newly_left_out(self) -> tuple[str, ...]:
        """Ids of problems that were used before normal forms decided; empty for data without repetitions."""
        return tuple(sorted(self._newly))

    def _split(self) -> tuple[list[Entry], list[Entry]]:
        """Training and held-out problems; none is in both."""
        settings, seen = self.settings, dict[str, Entry]()
        held_out: list[Entry] = []
        if settings.validation_path is not None:
            held_out = list(self._entries("validation_path", settings.validation_split, seen, "duplicate"))
        both = list(self._entries("path", settings.split, seen, "held out"))
        share = settings.held_out_share
        held_out += [entry for entry in both if position(entry.prompt.id) < share]
        rest = [entry for entry in both if position(entry.prompt.id) >= share]
        if clash := {entry.prompt.id for entry in rest} & {entry.prompt.id for entry in held_out}:
            raise ValueError(
                f"task {self.name!r}: id {min(clash)!r} has different questions in the two files; leave `id` out to "
                "use the hash of the question"
            )
        return rest, held_out

    def _entries(self, field: str, split: str | None, seen: dict[str, Entry], again: Reason) -> Iterator[Entry]:
        """Problems of the file that `field` names, each once, without those in `seen`, which grows.

        `again` is the reason for leaving out a problem that an earlier file has.
        """
        path = Path(getattr(self.settings, field))
        rows = read_task_rows(path, split)
        if path.exists() and content_sha256(path, field) != getattr(self.settings, f"{field}_sha256"):
            raise ValueError(
                f"task {self.name!r}: {path} has changed since the run was planned; restore the old content, or "
                "start the sweep again: new content makes new runs"
            )
        ids, earlier = dict[str, str](), frozenset(seen)
        is_empty = True
        for row in rows:
            is_empty = False
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
                self.unreadable.append(_row(row, "unreadable", str(error)))
                continue
            self.never_shown.update(about_but_not_shown(row, entry.problem))
            if (other := seen.get(entry.key)) is not None:
                is_same = other.problem.identity == entry.problem.identity
                same = "the same problem as" if is_same else "a variant of"
                reason = again if entry.key in earlier else "duplicate"
                self._leave_out(row, reason, f"{same} {other.where}", same_as=other.where)
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
                self.unreadable.append(_row(row, "unreadable", detail))
                continue
            ids[name] = row.where
            yield entry
        if is_empty:
            raise ValueError(
                f"task {self.name!r}: {path} has no rows, so 0 problems to train on and 0 held out; name a file with "
                "problems"
            )

    def _entry(self, row: TaskRow) -> Entry:
        problem = self._read(row)
        prompt = Prompt(
            task=self.name,
            id=self._id(row, problem),
            tokens=self.tokenizer.prompt(problem.asked.text),
            answer=problem.answer,
            difficulty=self._difficulty(row),
        )
        return Entry(prompt=prompt, problem=problem, where=row.where, key=problem.normal_form)

    def _leave_out(self, row: TaskRow, reason: Reason, detail: str, same_as: str = "") -> None:
        self.left_out.append(_row(row, reason, detail, same_as))

    def _id(self, row: TaskRow, problem: Problem) -> str:
        if self.settings.id is not None:
            return row.text("id", self.settings.id, ())
        return hashlib.sha256(problem.identity.encode()).hexdigest()[:16]

    def _difficulty(self, row: TaskRow) -> float:
        if self.settings.difficulty is None:
            return 0.0
        text = row.text("difficulty", self.settings.difficulty, ())
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{row.where}: difficulty is {text!r}; a number is needed") from None

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Judge what follows the first end of thinking; unparsable if thinking never ends."""
        answer = self.tokenizer.reader.answer(response)
        return Judgement("unparsable") if answer is None else self._judge(answer.text, prompt.answer)

    def verify(self, prompt: Prompt, response: list[int]) -> Outcome:
        """The outcome of `judge` alone."""
        return self.judge(prompt, response).outcome

    def written(self, prompt: Prompt) -> Written:
        """The prompt's row, and how a demonstration of it answers."""
        return self._written[prompt.id]

    @property
    def has_demonstrations(self) -> bool:
        """Whether there is a written solution to start from."""
        return bool(self._demonstrations)

    def demonstrations(self) -> list[tuple[Prompt, tuple[int, ...]]]:
        """Every written solution as it is demonstrated without errors."""
        return [
            (prompt, demonstrated_solution(self.tokenizer, problem.thought or "", problem.response))
            for prompt, problem in self._demonstrations
        ]

    def stop_demonstrating(self, ids: Container[str]) -> None:
        """Demonstrate the solutions of these problems no more."""
        self._demonstrations = [(prompt, problem) for prompt, problem in self._demonstrations if prompt.id not in ids]

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A written solution as the thought, with chance `noise` of an error at each character; the answer.

        Without thinking the solution is the first part of the answer.
        """
        prompt, problem = self._demonstrations[int(rng.integers(len(self._demonstrations)))]
        thought = list(problem.thought or "")
        for i in range(len(thought)):
            if rng.random() < noise:
                thought[i] = thought[int(rng.integers(len(thought)))]
        return prompt, demonstrated_solution(self.tokenizer, "".join(thought), problem.response)


ABOUT = ("context", "contexts", "passage", "article", "paragraph", "document", "story", "background", "premise", "body")
"""What columns are usually called that a question is about, in small letters."""


def about_but_not_shown(row: TaskRow, problem: Problem) -> Iterator[str]:
    """Those columns of the row, unless the prompt holds their text."""
    for name, value in row.values.items():
        if (
            name.lower() not in ABOUT
            or is_missing(value)
            or value in ("", problem.thought)
            or name in problem.asked.columns
        ):
            continue
        if not (isinstance(value, str) and value.strip() in problem.asked.text):
            yield name


def _row(row: TaskRow, reason: Reason, detail: str, same_as: str = "") -> LeftOut:
    """The row as one that is left out; `detail` may begin with its place, as errors do."""
    return LeftOut(where=row.where, reason=reason, detail=detail.removeprefix(f"{row.where}: "), same_as=same_as)
