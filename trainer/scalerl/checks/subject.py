"""What the checks look at: a recipe, its tokenizer and its tasks, each made once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from scalerl.recipe import AnyTask, ResolvedRecipe
from scalerl.recipe.tasks import Downstream
from scalerl.rollout import Prompt
from scalerl.sandbox import SandboxUnavailable
from scalerl.tasks import Task, TaskError, make_task
from scalerl.tasks.file_task import FileTask
from scalerl.tasks.leakage import leave_out_leaks
from scalerl.tasks.left_out import LeftOut
from scalerl.tokens import Tokenizer, make_tokenizer


@dataclass(frozen=True, kw_only=True)
class MadeTask:
    """A task of the recipe, or why it cannot be made."""

    settings: AnyTask | Downstream
    is_downstream: bool
    task: Task | None = None
    error: str = ""
    lacks_sandbox: bool = False
    """Whether it cannot be made because programs cannot be run here."""
    rows: tuple[LeftOut, ...] = ()
    """Rows of its files that cannot be used: a run refuses the task for them, the checks look at the others too."""

    @property
    def name(self) -> str:
        """The task's name; a file that is only measured is marked."""
        return f"{self.settings.title} (downstream)" if self.is_downstream else self.settings.title

    def prompts(self) -> Iterator[Prompt]:
        """Those to train on, then those held out."""
        if self.task is not None:
            yield from self.task.train
            yield from self.task.validation


class Subject:
    """One recipe under examination."""

    def __init__(self, recipe: ResolvedRecipe) -> None:
        self.recipe = recipe

    def of(self, recipe: ResolvedRecipe) -> "Subject":
        """Another recipe with the same tokenizer and tasks."""
        other = Subject(recipe)
        other.tokenizer, other.tasks = self.tokenizer, self.tasks
        return other

    @cached_property
    def tokenizer(self) -> Tokenizer | str:
        """The model's tokenizer, or why it cannot be used."""
        try:
            return make_tokenizer(self.recipe.model, thinks=self.recipe.generation.thinks)
        except (ValueError, OSError, KeyError, ImportError) as error:
            return f"{error}"

    @cached_property
    def tasks(self) -> tuple[MadeTask, ...]:
        """The tasks that are trained on, then those that are only measured; none without a tokenizer."""
        if isinstance(self.tokenizer, str):
            return ()
        made = [self._made(settings, self.tokenizer, is_downstream=False) for settings in self.recipe.tasks]
        made += [self._made(one, self.tokenizer, is_downstream=True) for one in self.recipe.evaluation.downstream]
        return self._without_leaks(made)

    def _without_leaks(self, made: list[MadeTask]) -> tuple[MadeTask, ...]:
        """The tasks without training problems that one of them measures; an error where nothing is left to train on."""
        pairs = [(one, one.task) for one in made if isinstance(one.task, FileTask)]
        try:
            leave_out_leaks(
                [task for one, task in pairs if not one.is_downstream],
                [task for one, task in pairs if one.is_downstream],
            )
        except ValueError as error:
            return tuple(one if one.is_downstream else replace(one, task=None, error=str(error)) for one in made)
        return tuple(made)

    def _made(self, settings: AnyTask | Downstream, tokenizer: Tokenizer, *, is_downstream: bool) -> MadeTask:
        try:
            task = make_task(settings, tokenizer, readable_only=True)
        except TaskError as error:
            return MadeTask(
                settings=settings,
                is_downstream=is_downstream,
                error=str(error),
                lacks_sandbox=isinstance(error.__cause__, SandboxUnavailable),
                rows=error.rows,
            )
        rows = tuple(task.unreadable) if isinstance(task, FileTask) else ()
        return MadeTask(settings=settings, is_downstream=is_downstream, task=task, rows=rows)
