"""Counts the tasks' prompts, both kept and left out (by reason), and checks their order."""

from collections.abc import Iterable, Iterator

import numpy as np

from scalerl.checks.finding import Fault, Finding, of_rows
from scalerl.checks.subject import MadeTask, Subject
from scalerl.prompts.ordered_pool import pool_of
from scalerl.quantities import counted
from scalerl.tasks.left_out import LeftOut, reasons_text
from scalerl.tasks.text_task import TextTask


def check_data(subject: Subject) -> Iterator[Finding]:
    """Yields a line for each task, and one for its unused columns."""
    for made in subject.tasks:
        yield _of_task(made)
        if isinstance(made.task, TextTask) and made.task.never_shown:
            yield _of_columns(made, made.task)


def _of_task(made: MadeTask) -> Finding:
    if made.lacks_sandbox:
        found = "not examined: this machine cannot run the task's programs"
        return Finding(part="data", check=made.name, level="warning", found=found)
    if made.task is None:
        faults = _faults(made.rows) or [Fault(where=made.name, what=made.error)]
        remedy = "correct the file or the task's settings"
        return of_rows("data", made.name, "the task cannot be made", faults, remedy, level="error")
    num_train, num_held_out = len(made.task.train), len(made.task.validation)
    kept = f"{counted(num_train, 'prompt')} to train on, {num_held_out:,} held out"
    if made.is_downstream:
        kept = f"{counted(num_held_out, 'prompt')} to measure"
    left_out = made.task.left_out if isinstance(made.task, TextTask) else []
    kept += "".join(f"; {note}" for note in made.task.notes) if isinstance(made.task, TextTask) else ""
    if made.rows:
        found = f"{counted(len(made.rows), 'row')} cannot be used; without them {kept}"
        found += f"; left out: {reasons_text(left_out)}" if left_out else ""
        remedy = "correct or remove these rows: a run rejects the whole task"
        return of_rows("data", made.name, found, _faults([*made.rows, *left_out]), remedy, level="error")
    found = f"{kept}; left out: {reasons_text(left_out)}" if left_out else kept
    return of_rows("data", made.name, found, _faults(left_out), "")


def _of_columns(made: MadeTask, task: TextTask) -> Finding:
    columns = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in task.never_shown.items())
    name = next(iter(task.never_shown))
    remedy = f"write {{{name}}} into the task's `template` to show it, or remove the column from the file"
    found = f"no prompt shows the column {columns}"
    return Finding(part="data", check=f"{made.name} columns", level="warning", found=found, remedy=remedy)


def _faults(rows: Iterable[LeftOut]) -> list[Fault]:
    return [Fault(where=row.where, what=row.detail, kind=row.reason) for row in rows]


def check_curriculum(subject: Subject) -> Iterator[Finding]:
    """Yields a line for each task whose training prompts lack the order that a curriculum needs."""
    for made in subject.tasks:
        if made.task is None or made.is_downstream:
            continue
        try:
            pool_of(made.task.train, subject.recipe.curriculum, np.random.default_rng(0))
        except ValueError as error:
            found, _, remedy = str(error).partition("; ")
            yield Finding(part="data", check=f"{made.name} order", level="error", found=found, remedy=remedy)
