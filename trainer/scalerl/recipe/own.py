"""A function of your own in a recipe: `{type: custom, function: "my_ideas.losses:topr", parameters: {beta: 0.1}}`.

The content of its files is part of a run's identity, so an edited function makes new runs. The folder is not.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from scalerl.durable import file_sha256
from scalerl.frozen import Count, Frozen, Unit
from scalerl.recipe.one_task import OneTask, Template
from scalerl.recipe.own_files import find_source, module_of_file

OwnParameter = bool | int | float | str | None


def _module_and_name(function: str) -> str:
    module, _, name = function.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(
            f"found {function!r}; write module and name, as in `my_ideas.losses:topr` for the function topr of "
            f"my_ideas/losses.py"
        )
    return function


class Own(Frozen):
    """A function of your own, by its import path ([Your own loss, advantage, reward, task](own.md))."""

    type: Literal["custom"] = "custom"
    function: Annotated[str, AfterValidator(_module_and_name)]
    """Module and name: `my_ideas.losses:topr` is the function `topr` in `my_ideas/losses.py`. The file is searched for
    beside the recipe or sweep file that names it, then in the folder where the command is run."""
    parameters: dict[str, OwnParameter] = Field(default_factory=dict)
    """Keyword arguments of the function."""
    folder: str = "."
    """Folder that the module was found in; filled in, and not part of a run's identity."""
    folder_sha256: tuple[str, ...] | None = None
    """Hash and name of each file in this folder that the function needs; filled in when the recipe is resolved."""

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        if self.folder_sha256 is None:
            folder, files = find_source(self.module, (Path(self.folder), Path.cwd()))
            hashes = tuple(f"{file_sha256(folder / name)} {name}" for name in files)
            # Frozen for its users; here it is still being made.
            object.__setattr__(self, "folder", str(folder))
            object.__setattr__(self, "folder_sha256", hashes)
        return self

    @property
    def module(self) -> str:
        """Module of the function: `my_ideas.losses`."""
        return self.function.partition(":")[0]

    @property
    def function_name(self) -> str:
        """Name of the function in its module: `topr`."""
        return self.function.partition(":")[2]

    @property
    def file(self) -> Path:
        """File of the module: `/home/ada/sweeps/my_ideas/losses.py`."""
        return Path(self.folder) / next(name for name in self.files if module_of_file(name) == self.module)

    @property
    def files(self) -> dict[str, str]:
        """Hash of each file, by path relative to the folder."""
        pairs = (line.partition(" ") for line in self.folder_sha256 or ())
        return {name: sha256 for sha256, _, name in pairs}

    def moved(self, folder: Path) -> Self:
        """This function with its files in another folder."""
        return self.model_copy(update={"folder": str(folder)})


class OwnLoss(Own):
    """A loss of your own: a function from `LossInputs` to `LossOutputs` ([Your own loss](own.md))."""

    start: bool = False
    """True gives the function `start_BT`, log-probabilities under the weights at the start of the round. This costs one
    forward pass per batch."""


class CustomTask(OneTask, Own):
    """Problems and a judge of your own ([Your own task](own.md#a-task)): a function that returns `TaskProblems`."""

    validation: Annotated[float, Field(gt=0, lt=1), Unit("share of problems")] = 0.1
    """Share of the problems held out, chosen by the hash of their ids."""
    template: Template = "{question}"
    """Text of the prompt; {question} is the question of the problem."""
    max_prompt_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Longest prompt; problems with a longer one are left out and counted."""

    @property
    def title(self) -> str:
        """Name of its prompts and rows: that of the function, unless it has its own."""
        return self.name or self.function_name

    @property
    def held_out_share(self) -> float:
        """Share of the problems that is held out."""
        return self.validation
