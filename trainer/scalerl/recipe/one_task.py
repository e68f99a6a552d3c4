"""Settings that every task of a mix has, and types that several tasks share."""

from typing import Annotated

from pydantic import AfterValidator, Field

from scalerl.frozen import Frozen, Positive, Unit
from scalerl.recipe.template import shows

ALL = "all"
"""Name of the rows for a mix as a whole."""


def _not_all(name: str) -> str:
    if name == ALL:
        raise ValueError(f"the name {ALL!r} is reserved for the mean over all tasks; choose another name")
    return name


TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"), AfterValidator(_not_all)]
ColumnName = Annotated[str, Field(min_length=1)] | None
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None


class OneTask(Frozen):
    """Settings that every task has in a mix."""

    name: TaskName | None = None
    """Name of its rows and curve; null uses its type. Every task of a scale needs a different name."""
    weight: Annotated[Positive, Unit("relative")] | None = None
    """Share of the training prompts drawn from it, relative to the weights of the other tasks. Without weights, tasks
    are drawn in proportion to their numbers of training prompts. Either all tasks of a mix have a weight, or none."""

    @property
    def title(self) -> str:
        """Name of its prompts and rows."""
        return self.name or type(self).model_fields["type"].default


def _asks(template: str) -> str:
    if not shows(template, "question"):
        raise ValueError(f"found {template[:60]!r}; a template must contain {{question}}")
    return template


Template = Annotated[str, AfterValidator(_asks)]
"""Text with {question}, and {name} for any column of the row (`scalerl.recipe.template`)."""
