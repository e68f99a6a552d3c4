"""Subject of the checks: a recipe, its tokenizer and its tasks, each made once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from scalerl.checks.own_process import tried_once
from scalerl.recipe import AnyTask, CustomTask, ResolvedRecipe
from scalerl.recipe.tasks import Downstream
from scalerl.rollout import Prompt
from scalerl.sandbox import SandboxUnavailable
from scalerl.tasks import Task, TaskError, make_task
from scalerl.tasks.leakage import leave_out_leaks
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.text_task import TextTask
from scalerl.tokens import Tokenizer, make_tokenizer


@dataclass(frozen=True, kw_only=True)
class MadeTask:
    """A task of the recipe, or the reason why it cannot be made."""

    settings: AnyTask | Downstream
    is_downstream: bool
    task: Task | None = None
    error: str = ""
    lacks_sandbox: bool = False
    """True if it cannot be made because this machine cannot run programs."""
    rows: tuple[LeftOut, ...] = ()
    """Rows of its files that cannot be used: a run rejects the task because of them, but the checks examine the others
    too."""

    @property
    def name(self) -> str:
        """Name of the task, with a mark on files that are only measured."""
        return f"{self.settings.title} (downstream)" if self.is_downstream else self.settings.title

    def prompts(self) -> Iterator[Prompt]:
        """Training prompts, then held-out ones."""
        if self.task is not None:
            yield from self.task.train
            yield from self.task.validation


class Subject:
    """One recipe under examination."""

    def __init__(self, recipe: ResolvedRecipe) -> None:
        self.recipe = recipe

    def of(self, recipe: ResolvedRecipe) -> "Subject":
        """Subject for another recipe with the same tokenizer and tasks."""
        other = Subject(recipe)
        other.tokenizer, other.tasks = self.tokenizer, self.tasks
        return other

    @cached_property
    def tokenizer(self) -> Tokenizer | str:
        """The model's tokenizer, or the reason why it cannot be used."""
        try:
            return make_tokenizer(self.recipe.model, thinks=self.recipe.generation.thinks)
        except (ValueError, OSError, KeyError, ImportError) as error:
            return f"{error}"

    @cached_property
    def tasks(self) -> tuple[MadeTask, ...]:
        """Training tasks, then tasks that are only measured; empty without a tokenizer."""
        if isinstance(self.tokenizer, str):
            return ()
        made = [self._made(settings, self.tokenizer, is_downstream=False) for settings in self.recipe.tasks]
        made += [self._made(one, self.tokenizer, is_downstream=True) for one in self.recipe.evaluation.downstream]
        return self._without_leaks(made)

    def _without_leaks(self, made: list[MadeTask]) -> tuple[MadeTask, ...]:
        """Tasks without training problems that another one measures; an error if nothing is left to train on."""
        pairs = [(one, one.task) for one in made if isinstance(one.task, TextTask)]
        try:
            leave_out_leaks(
                [task for one, task in pairs if not one.is_downstream],
                [task for one, task in pairs if one.is_downstream],
            )
        except ValueError as error:
            return tuple(one if one.is_downstream else replace(one, task=None, error=str(error)) for one in made)
        return tuple(made)

    def _made(self, settings: AnyTask | Downstream, tokenizer: Tokenizer, *, is_downstream: bool) -> MadeTask:
        made = partial(MadeTask, settings=settings, is_downstream=is_downstream)
        if isinstance(settings, CustomTask) and (tried := tried_once("task", settings)).level == "error":
            return made(error=tried.found)
        try:
            task = make_task(settings, tokenizer, readable_only=True)
        except TaskError as error:
            lacks_sandbox = isinstance(error.__cause__, SandboxUnavailable)
            return made(error=str(error), lacks_sandbox=lacks_sandbox, rows=error.rows)
        return made(task=task, rows=tuple(task.unreadable) if isinstance(task, TextTask) else ())
