"""Makes the tasks of a recipe from their settings, so that nothing is both trained on and measured."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scalerl.recipe import AnyTask, Code, CustomTask, KSmallest, Math, Modular, MultipleChoice, Qa, ReasoningGym
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.tasks import Downstream, Measured
from scalerl.tasks.leakage import leave_out_leaks
from scalerl.tasks.left_out import LeftOut, UnreadableRows, pairs_of_files, reasons_text
from scalerl.tasks.mix import Mix, shares_of
from scalerl.tasks.task import Task, TaskError
from scalerl.tasks.text_task import TextTask
from scalerl.tokens import Tokenizer

FEWEST_HELD_OUT = 2
"""Minimum number of held-out prompts: a single prompt says nothing about others."""
FEW_HELD_OUT = 30
"""Number of measured prompts below which the choice of prompts alone adds a standard error of about 0.09 or more."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """All tasks of a scale; nothing is both trained on and measured."""

    trained: Task
    """The only task, or the mix of several."""
    downstream: tuple[Task, ...]
    """Tasks that are only measured, in the recipe's order."""

    @property
    def left_out(self) -> dict[str, list[LeftOut]]:
        """Rows that are not used, by task."""
        return {task.name: task.left_out for task in self._parts if isinstance(task, TextTask)}

    @property
    def _parts(self) -> tuple[Task, ...]:
        trained = tuple(self.trained.tasks.values()) if isinstance(self.trained, Mix) else (self.trained,)
        return trained + self.downstream

    def lines(self) -> Iterator[str]:
        """Lines about its data that a run prints before it starts."""
        for task in self._parts:
            rows = self.left_out.get(task.name)
            if rows:
                used = f"{len(task.train)} + {len(task.validation)} problems"
                yield f"task {task.name}: {used}; left out: {reasons_text(rows)}"
                yield from (f"task {task.name}: {sentence}" for sentence in pairs_of_files(rows))
            if isinstance(task, TextTask):
                yield from (f"task {task.name}: {note}" for note in task.notes)
            if isinstance(task, TextTask) and task.never_shown:
                yield f"task {task.name}: warning: no prompt shows the column {', '.join(task.never_shown)}"
            num_measured = len(task.validation)
            if num_measured < FEW_HELD_OUT:
                yield f"task {task.name}: warning: {few_held_out(num_measured)}"


def make_task(settings: AnyTask | Downstream, tokenizer: Tokenizer, *, readable_only: bool = False) -> Task:
    """The task for `settings`, its prompts written with `tokenizer`; raises TaskError if it cannot be made.

    With `readable_only`, unusable rows do not reject the task, so that a check can examine the others.
    """
    try:
        task = _make(settings, tokenizer)
        has_few = len(task.validation) < FEWEST_HELD_OUT and not isinstance(settings, Measured)
        if isinstance(task, TextTask) and (has_few or not readable_only):
            task.refuse_unreadable()
    except UnreadableRows as error:
        raise TaskError(f"task {settings.title!r}: {error}", error.rows) from error
    except ValueError as error:
        raise TaskError(str(error)) from error
    if has_few:
        raise TaskError(
            f"task {task.name!r}: a pass rate needs more than {len(task.validation)} held-out prompt; hold out at "
            f"least {FEWEST_HELD_OUT}, better {FEW_HELD_OUT} or more: raise validation, or use a larger validation_path"
        )
    return task


def _make(settings: AnyTask, tokenizer: Tokenizer) -> Task:
    """Loads only what this kind of task needs: the verifiers of all kinds take a fifth of a second."""
    match settings:
        case KSmallest():
            from scalerl.tasks.k_smallest import KSmallestTask

            return KSmallestTask(settings, tokenizer)
        case Modular():
            from scalerl.tasks.modular import ModularTask

            return ModularTask(settings, tokenizer)
        case Math():
            from scalerl.tasks.mathematics import math_task

            return math_task(settings, tokenizer)
        case Code():
            from scalerl.tasks.coding import code_task

            return code_task(settings, tokenizer)
        case MultipleChoice():
            from scalerl.tasks.choices import choice_task

            return choice_task(settings, tokenizer)
        case Qa():
            from scalerl.tasks.questions import qa_task

            return qa_task(settings, tokenizer)
        case ReasoningGym():
            from scalerl.tasks.gym import gym_task

            return gym_task(settings, tokenizer)
        case CustomTask():
            from scalerl.tasks.own import own_task

            return own_task(settings, tokenizer)
        case Episodes():
            from scalerl.tasks.episodes import EpisodesTask

            return EpisodesTask(settings, tokenizer)


def all_tasks(settings: Sequence[AnyTask], downstream: Sequence[Downstream], tokenizer: Tokenizer) -> Tasks:
    """The training tasks and the downstream files; nothing held out or downstream anywhere is trained on.

    TaskError if that cannot be, or if a task's file is not right.
    """
    trained = [make_task(one, tokenizer) for one in settings]
    measured = [make_task(one, tokenizer) for one in downstream]
    try:
        leave_out_leaks(_in_files(trained), _in_files(measured))
    except ValueError as error:
        raise TaskError(str(error)) from error
    only = trained[0] if len(trained) == 1 else Mix(trained, shares_of(settings, trained))
    return Tasks(trained=only, downstream=tuple(measured))


def _in_files(tasks: Sequence[Task]) -> list[TextTask]:
    return [task for task in tasks if isinstance(task, TextTask)]


def few_held_out(num_prompts: int) -> str:
    """Warning about the standard error of a pass rate from this few prompts."""
    error = 0.5 / math.sqrt(num_prompts)
    return (
        f"only {num_prompts} prompts are measured, so a pass rate of 0.5 has a standard error of up to {error:.2f}; "
        f"measure at least {FEW_HELD_OUT}"
    )
