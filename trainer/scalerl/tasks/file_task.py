"""A task with problems in a file: `file_task(settings, tokenizer, read=math_problem, judge=..., num_judges=4)`.

The kinds of task define columns and judges: `mathematics`, `coding`, `choices`, `questions`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalerl.recipe import FileSettings
from scalerl.recipe.file_hash import content_sha256
from scalerl.rollout import Judgement
from scalerl.tasks.files import TaskRow, read_task_rows
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.text_task import Problem, TextTask
from scalerl.tokens import Tokenizer


def file_task(
    settings: FileSettings,
    tokenizer: Tokenizer,
    *,
    read: Callable[[TaskRow], Problem],
    judge: Callable[[str, Any], Judgement],
    num_judges: int,
    notes: Sequence[str] = (),
) -> TextTask:
    """Task of one or two files; `read` finds the problem in a row, `judge` compares an answer with the right one."""

    def problem(row: TaskRow) -> Problem:
        found = read(row)
        name = None if settings.id is None else row.text("id", settings.id, ())
        return replace(found, id=name, difficulty=_difficulty(row, settings))

    has_two = settings.validation_path is not None
    return TextTask(
        settings,
        tokenizer,
        rows=_rows(settings, "path", settings.split),
        held_out_rows=_rows(settings, "validation_path", settings.validation_split) if has_two else (),
        read=problem,
        judge=judge,
        num_judges=num_judges,
        notes=notes,
    )


def _rows(settings: FileSettings, field: str, split: str | None) -> Iterator[TaskRow | LeftOut]:
    """Rows of the file named by `field`; raises ValueError if it has none, or another content than was planned."""
    path = Path(getattr(settings, field))
    rows = read_task_rows(path, split)
    if path.exists() and content_sha256(path, field) != getattr(settings, f"{field}_sha256"):
        raise ValueError(
            f"task {settings.title!r}: {path} has changed since the run was planned; restore the old content, or "
            "restart the sweep: new content makes new runs"
        )
    first = next(rows, None)
    if first is None:
        raise ValueError(
            f"task {settings.title!r}: {path} has no rows, so 0 problems to train on and 0 held out; use a file with "
            "problems"
        )
    yield first
    yield from rows


def _difficulty(row: TaskRow, settings: FileSettings) -> float:
    if settings.difficulty is None:
        return 0.0
    text = row.text("difficulty", settings.difficulty, ())
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{row.where}: difficulty is {text!r}; expected a number") from None
