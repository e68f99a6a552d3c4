"""Environments of Gymnasium whose observations and actions are text, as `gymnasium:my_package:Maze-v0`.

`won` is a sum of rewards that reaches the environment's `reward_threshold`, or 1 where it has none, with a last reward
above 0: a game of GEM whose mine is hit last has all other rewards, too.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected
from scalerl.rollout import End


def made(name: str, settings: dict[str, Any]) -> "SteppedText":
    """The environment of this id; `settings` are keyword arguments of its class."""
    gymnasium = import_module("gymnasium")
    made = gymnasium.make(name, disable_env_checker=True, **settings)
    for space in (made.observation_space, made.action_space):
        if not isinstance(space, gymnasium.spaces.Text):
            raise Rejected(f"has {space} where observations and actions must be gymnasium.spaces.Text")
    return SteppedText(made, solved=1.0 if made.spec.reward_threshold is None else made.spec.reward_threshold)


class SteppedText:
    """An environment with Gymnasium's `reset` and `step`; `rule_broken` is the last reward where a rule was broken."""

    def __init__(self, environment: Any, *, solved: float, rule_broken: float | None = None) -> None:
        self.environment, self.solved, self.rule_broken = environment, solved, rule_broken
        self.close = getattr(environment, "close", lambda: None)

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """The first observation."""
        self.total, self.turns = 0.0, 0
        return _text(*self.environment.reset(seed=seed))

    def act(self, text: str) -> Reply:
        """The observation after an action."""
        observation, reward, terminated, truncated, info = self.environment.step(text)
        self.total, self.turns = self.total + float(reward), self.turns + 1
        end: End | None = None
        if terminated or truncated:  # the sum of ten tenths is less than 1
            end = "too_many_turns" if truncated and self.turns > 1 else "lost"
            end = "rules_broken" if reward == self.rule_broken else end
            end = "won" if reward > 0 and self.total >= self.solved - 1e-6 else end
        return Reply(observation if end else _text(observation, info), float(reward), end)


def _text(observation: str, info: Mapping[str, Any]) -> str:
    """The observation, and GEM's `suffix`, which holds the board."""
    return "\n".join(part for part in (observation, info.get("suffix")) if part)
