"""Keeps problems that are held out or downstream in any task of a scale out of training and demonstrations elsewhere.

No two tasks of one kind ask the same problem in the same words either, since it would count twice in the mix.

Generated tasks need no check: all of them hold prompts out by the same hash of the same id.
"""

from collections.abc import Iterator, Mapping, Sequence

from scalerl.tasks.left_out import LeftOut, Reason
from scalerl.tasks.text_task import Entry, TextTask


def leave_out_leaks(trained: Sequence[TextTask], downstream: Sequence[TextTask]) -> None:
    """Remove from each of `trained` the training problems that any task measures."""
    measured: dict[str, tuple[Entry, Reason]] = {}
    both: tuple[tuple[Sequence[TextTask], Reason], ...] = ((downstream, "downstream"), (trained, "held out"))
    for tasks, reason in both:
        for task in tasks:
            for entry in task.held_out_entries:
                measured.setdefault(entry.key, (entry, reason))
    used: dict[tuple[str, str, str], Entry] = {}
    for task in trained:
        if leaks := dict(_leaks(task, measured)):
            task.leave_out(leaks)
        if repeated := dict(_repeated(task, used)):
            task.leave_out(repeated)
        used.update({(*_way_of_asking(task), entry.key): entry for entry in task.train_entries})


def _leaks(task: TextTask, measured: dict[str, tuple[Entry, Reason]]) -> Iterator[tuple[str, LeftOut]]:
    """Training problems of a task that are measured, by id."""
    for entry in task.train_entries:
        if entry.key in measured:
            other, reason = measured[entry.key]
            role = "held out by" if reason == "held out" else "measured by the downstream file of"
            detail = f"the same problem as {other.where}, which is {role} task {other.prompt.task!r}"
            yield entry.prompt.id, LeftOut(where=entry.where, reason=reason, detail=detail, same_as=other.where)


def _way_of_asking(task: TextTask) -> tuple[str, str]:
    return task.settings.type, task.settings.template


def _repeated(task: TextTask, used: Mapping[tuple[str, str, str], Entry]) -> Iterator[tuple[str, LeftOut]]:
    """Training problems of a task that an earlier task trains on in the same words, by id."""
    for entry in task.train_entries:
        if other := used.get((*_way_of_asking(task), entry.key)):
            detail = f"the same problem as {other.where}, which task {other.prompt.task!r} trains on"
            yield entry.prompt.id, LeftOut(where=entry.where, reason="duplicate", detail=detail, same_as=other.where)
