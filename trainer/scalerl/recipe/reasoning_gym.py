"""Problems that the library `reasoning-gym` makes and judges: one of its data sets, with its own configuration.

    tasks:
      - {type: reasoning_gym, dataset: chain_sum, config: {min_terms: 2, max_terms: 2, max_digits: 2}, size: 2000}

The hash of the problems is part of a run's identity, as that of a file is: a version of the library that makes other
problems makes new runs.
"""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Count, Unit
from scalerl.gym import GymError, problems_sha256
from scalerl.recipe.one_task import OneTask, Sha256, Template


class ReasoningGym(OneTask):
    """Problems of a data set of the library `reasoning-gym`, judged by the data set's own scorer."""

    type: Literal["reasoning_gym"] = "reasoning_gym"
    dataset: Annotated[str, Field(min_length=1)]
    """Name of the data set in the library, such as chain_sum."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Configuration of the data set, by the library's names; omitted settings have the library's defaults."""
    size: Annotated[Count, Unit("problems")] = 1000
    """Number of different problems, training and held-out together."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the first problem; each draw adds one."""
    problems_sha256: Sha256 = None
    """Hash of all problems and answers, filled in when the recipe is resolved."""
    validation: Annotated[float, Field(gt=0, lt=1), Unit("share of problems")] = 0.1
    """Share of the problems held out, chosen by the hash of the question."""
    template: Template = "{question}\n\nWrite the final answer between <answer> and </answer>."
    """Text of the prompt; {question} is the library's question."""
    answer: Literal["tag", "stated", "text"] = "tag"
    """Part of a response that is judged. tag: the text of the last <answer></answer>. stated: the final answer as the
    judge of mathematics finds it, in a box, after "answer is", or a number at the end ("4 * 1 = 4."). text: all."""
    partial_scores: bool = False
    """If true, a wrong answer with the library's score s is rewarded with 2 s - 1 instead of -1. Only a score of 1 is
    right."""
    max_prompt_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Longest prompt; problems with a longer one are left out and counted."""
    time_limit_s: Annotated[float, Field(gt=0, le=60), Unit("s")] = 5.0
    """CPU seconds for scoring one answer; an answer that takes longer is wrong."""

    @model_validator(mode="after")
    def _problems(self) -> Self:
        if self.problems_sha256 is None:
            try:
                found = problems_sha256(self.dataset, json.dumps(self.config, sort_keys=True), self.size, self.seed)
            except GymError as error:
                raise ValueError(str(error)) from None
            # Frozen for its users; here it is still being made.
            object.__setattr__(self, "problems_sha256", found)
        return self

    @property
    def title(self) -> str:
        """Name of its prompts and rows: that of the data set, unless it has its own."""
        return self.name or self.dataset

    @property
    def held_out_share(self) -> float:
        """Share of the problems that is held out."""
        return self.validation
