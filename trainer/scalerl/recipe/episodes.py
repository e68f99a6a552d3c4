"""Episodes: a task of several turns with an environment, which may be a library's, a class of the user's own, or ours.

tasks:
  - {type: episodes, environment: "textarena:Wordle-v0-raw", turns: 6, train: 512, validation: 64}
"""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from scalerl.frozen import Count, Unit
from scalerl.recipe.file_hash import content_sha256
from scalerl.recipe.one_task import OneTask, Sha256
from scalerl.recipe.own import Own

HELD_OUT_FROM = 1_000_000_000
"""Seed of the first held-out episode; training seeds count from 0."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A package of environments: `Library(package="textarena", module="textarena_games")`."""

    package: str
    """Name for pip and for its version."""
    module: str
    """Module of `scalerl.environments` that adapts it."""


ENVIRONMENT_LIBRARIES = {
    "textarena": Library(package="textarena", module="textarena_games"),
    "gem": Library(package="gem-llm", module="gem_games"),
    "gymnasium": Library(package="gymnasium", module="gymnasium_texts"),
    "skyrl_gym": Library(package="skyrl-gym", module="skyrl_environments"),
    "reasoning_gym": Library(package="reasoning-gym", module="reasoning_problems"),
}
"""Libraries by the word before the colon of an environment's name."""
GAMES = ("guess",)
"""Environments of this package."""


class OwnEnvironment(Own):
    """An environment of your own ([Your own environment](own.md#an-environment)): a class with `start` and `act`."""


class Episodes(OneTask):
    """Several turns with an environment (`scalerl.environments`); its pass rate is the share of episodes won.

    The token limits of `generation` hold for each turn.
    """

    type: Literal["episodes"] = "episodes"
    environment: str | OwnEnvironment
    """`guess`, the game of this package; library and name, as in `textarena:Wordle-v0-raw`, of textarena, gem,
    gymnasium, skyrl_gym or reasoning_gym; or {type: custom, function: "my_games:Doubler"} for a class of your own."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the environment."""
    turns: Annotated[int, Field(ge=1, le=10_000), Unit("turns")] = 8
    """Turns of the policy after which an episode ends as `too_many_turns`."""
    tokens_per_turn: Annotated[Count, Unit("tokens")] | None = None
    """Tokens of the policy in one turn, thinking included; null leaves the limits of `generation`. A longer turn is cut
    there, and the environment gets what was written."""
    context_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Tokens of a whole episode, with everything that the environment says; an episode without room for another turn
    ends as `too_long`."""
    history: Literal["template", "keep"] = "template"
    """Turns always stay as they were sampled. template: a chat template that writes earlier turns in another way, such
    as one that drops their thoughts, is refused. keep: it is taken, and the policy reads its earlier turns as it wrote
    them, which the model may not be used to."""
    train: Annotated[int, Field(ge=1, le=100_000_000), Unit("prompts")] = 256
    """Training episodes of different seeds; a prompt is the start of one, and a group repeats it."""
    validation: Annotated[int, Field(ge=1, le=10_000_000), Unit("prompts")] = 64
    """Held-out episodes, whose seeds are never trained on."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """JSON lines with a row for each episode, which the environment gets beside the seed; null gives it an empty row.
    `train` and `validation` then choose rows by the hash of their content. Not part of a run's identity."""
    path_sha256: Sha256 = None
    """Hash of the content, filled in when the recipe is resolved."""
    credit: Literal["episode", "turn"] = "episode"
    """episode: one advantage for all turns, from the sum of their rewards. turn: each turn has its own, from the
    rewards from this turn on, compared with the same turn of the group's other episodes (arXiv 2505.11821)."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor by which a reward counts less for each turn before it."""
    latency_s: Annotated[float, Field(ge=0, le=3600), Unit("s")] = 0.0
    """Time of one answer of the environment on the virtual clock; the wall clock measures it."""
    time_limit_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 10.0
    """Time for one answer of the environment; a longer one ends the episode as `timed_out`, without training on it."""
    version: str | None = None
    """Version of the library, filled in when the recipe is resolved; another version makes new runs."""

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        return None if path is None else str(Path(path).expanduser().absolute())

    @field_validator("environment")
    @classmethod
    def _known(cls, environment: str | OwnEnvironment) -> str | OwnEnvironment:
        if isinstance(environment, str):
            library, _, inside = environment.partition(":")
            if environment not in GAMES and (library not in ENVIRONMENT_LIBRARIES or not inside):
                known = ", ".join(f"{name}:NAME" for name in ENVIRONMENT_LIBRARIES)
                raise ValueError(
                    f"found {environment!r}; write {', '.join(GAMES)}, a library and a name ({known}), or {{type: "
                    f'custom, function: "my_games:Doubler"}} for a class of your own'
                )
        return environment

    @model_validator(mode="after")
    def _filled_in(self) -> Self:
        # Frozen for its users; here it is still being made.
        if self.path is not None and self.path_sha256 is None:
            object.__setattr__(self, "path_sha256", content_sha256(Path(self.path), "path"))
        if self.version is None and (library := self.library) is not None:
            try:
                object.__setattr__(self, "version", version(library.package))
            except PackageNotFoundError:
                raise ValueError(
                    f"environment {self.environment!r} needs the package {library.package}: pip install "
                    f"{library.package}"
                ) from None
        return self

    @property
    def library(self) -> Library | None:
        """Package that the environment comes from; None for ours and for the user's own."""
        return (
            ENVIRONMENT_LIBRARIES.get(self.environment.partition(":")[0]) if isinstance(self.environment, str) else None
        )

    @property
    def title(self) -> str:
        """Name of its prompts and rows: that of the environment, unless it has its own."""
        if self.name:
            return self.name
        if isinstance(self.environment, Own):
            return self.environment.function_name
        return "".join(one if one.isalnum() or one in "._-" else "_" for one in self.environment.rpartition(":")[2])

    @property
    def held_out_share(self) -> float:
        """Share of its episodes that is held out."""
        return self.validation / (self.train + self.validation)


def turn_limit(settings: Episodes, max_tokens: int) -> int:
    """Tokens that one turn may have, given the limit of `generation`."""
    return min(max_tokens, settings.tokens_per_turn or max_tokens)
