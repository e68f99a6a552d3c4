"""A task of the user's own: a function that returns problems and the judge of their answers.

tasks:
  - {type: custom, function: "my_ideas.tasks:sums", parameters: {count: 2000}, name: sums}
"""

from typing import Annotated

from pydantic import Field

from scalerl.frozen import Count, Unit
from scalerl.recipe.one_task import OneTask, Template
from scalerl.recipe.own import Own


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
