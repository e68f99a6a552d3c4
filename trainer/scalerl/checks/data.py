"""Counts the tasks' prompts: those kept, and those left out by reason."""

from collections.abc import Iterable, Iterator

from scalerl.checks.finding import Fault, Finding, in_file_order
from scalerl.checks.subject import MadeTask, Subject
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
        return Finding(
            part="data",
            check=made.name,
            level="error",
            found="the task cannot be made",
            remedy="correct the file or the task's settings",
            faults=_faults(made.rows) or (Fault(where=made.name, what=made.error),),
        )
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
        faults = _faults([*made.rows, *left_out])
        return Finding(part="data", check=made.name, level="error", found=found, remedy=remedy, faults=faults)
    if not left_out:
        return Finding(part="data", check=made.name, level="ok", found=kept)
    found = f"{kept}; left out: {reasons_text(left_out)}"
    return Finding(part="data", check=made.name, level="warning", found=found, faults=_faults(left_out))


def _of_columns(made: MadeTask, task: TextTask) -> Finding:
    columns = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in task.never_shown.items())
    name = next(iter(task.never_shown))
    remedy = f"write {{{name}}} into the task's `template` to show it, or remove the column from the file"
    found = f"no prompt shows the column {columns}"
    return Finding(part="data", check=f"{made.name} columns", level="warning", found=found, remedy=remedy)


def _faults(rows: Iterable[LeftOut]) -> tuple[Fault, ...]:
    return in_file_order(Fault(where=row.where, what=row.detail, kind=row.reason) for row in rows)
