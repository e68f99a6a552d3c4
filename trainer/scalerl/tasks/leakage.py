"""Keeps problems that are held out or downstream in any task of a scale out of training and demonstrations elsewhere.

Instructions that all questions of a file share are ignored when files are compared. No two tasks of one
kind ask the same problem in the same words either, since it would count twice in the mix.

Generated tasks need no check: all of them hold prompts out by the same hash of the same id.
"""

from collections.abc import Iterator, Mapping, Sequence

from scalerl.tasks.left_out import LeftOut, Reason
from scalerl.tasks.same_problem import problem_key
from scalerl.tasks.text_task import Entry, TextTask

SHORTEST_INSTRUCTION = 30
"""Minimum length of a text before or after all questions of a file for it to be an instruction, not a way to ask."""


def leave_out_leaks(trained: Sequence[TextTask], downstream: Sequence[TextTask]) -> None:
    """Remove from each of `trained` the training problems that any task measures."""
    measured: dict[str, tuple[Entry, Reason]] = {}
    bare: dict[str, tuple[Entry, Reason]] = {}
    both: tuple[tuple[Sequence[TextTask], Reason], ...] = ((downstream, "downstream"), (trained, "held out"))
    for tasks, reason in both:
        for task in tasks:
            without = _without_instruction(task)
            for entry in task.held_out_entries:
                measured.setdefault(entry.key, (entry, reason))
                bare.setdefault(without.get(entry.key, ""), (entry, reason))
    used: dict[tuple[str, str, str], Entry] = {}
    for task in trained:
        if leaks := dict(_leaks(task, measured, bare)):
            task.leave_out(leaks)
        if repeated := dict(_repeated(task, used)):
            task.leave_out(repeated)
        used.update({(*_way_of_asking(task), entry.key): entry for entry in task.train_entries})


def _without_instruction(task: TextTask) -> dict[str, str]:
    """Normal form of each problem without the instruction that all questions of the task share; empty without one."""
    entries = [*task.train_entries, *task.held_out_entries]
    questions = [entry.problem.question for entry in entries]
    first = _beginning(questions)
    first = first[: max(map(first.rfind, "\n.:")) + 1]
    last = _beginning([question[len(first) :][::-1] for question in questions])[::-1]
    last = last[next((i for i, sign in enumerate(last) if sign.isspace()), len(last)) :]
    if len(first) + len(last) < SHORTEST_INSTRUCTION or len(entries) == 1:
        return {}
    return {
        entry.key: problem_key(question.removeprefix(first).removesuffix(last))
        for entry, question in zip(entries, questions, strict=True)
        if not entry.problem.key
    }


def _beginning(texts: Sequence[str]) -> str:
    """The longest text with which all of them begin."""
    least, most = min(texts), max(texts)
    return next((least[:i] for i, sign in enumerate(least) if not most.startswith(sign, i)), least)


def _leaks(
    task: TextTask, measured: Mapping[str, tuple[Entry, Reason]], bare: Mapping[str, tuple[Entry, Reason]]
) -> Iterator[tuple[str, LeftOut]]:
    """Training problems of a task that are measured, by id."""
    without = _without_instruction(task)
    for entry in task.train_entries:
        found = measured.get(entry.key) or measured.get(without.get(entry.key, "")) or bare.get(entry.key)
        if found:
            other, reason = found
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
