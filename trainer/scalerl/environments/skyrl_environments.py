"""Environments of skyrl-gym, as `skyrl_gym:gsm8k`; the rows of the task's `path` are SkyRL's own.

    {"prompt": [{"role": "user", "content": "1 + 1 ="}], "reward_spec": {"ground_truth": "2"}, "extra_info": {}}

All that a row has beside `prompt` and `env_class` are the environment's extras. Messages become one text, without their
roles. `won` is a last reward of 1 or more.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from scalerl.environments.catalogue import known_id
from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected
from scalerl.rollout import End

SKYRL_GYM = import_module("skyrl_gym")


def made(name: str, settings: dict[str, Any]) -> "SkyRLEnvironment":
    """The environment of this id; `settings` are its `env_config`."""
    return SkyRLEnvironment(known_id(name, SKYRL_GYM.envs.registration.registry), settings)


class SkyRLEnvironment:
    """One row's episode."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name, self.config, self.environment = name, import_module("omegaconf").OmegaConf.create(settings), None

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """The row's prompt."""
        if "prompt" not in row:
            raise Rejected(f"a row needs a prompt beside {list(row)}; set the task's path to a file of SkyRL's rows")
        extras = {key: value for key, value in row.items() if key not in ("prompt", "env_class")}
        self.environment = SKYRL_GYM.make(self.name, env_config=self.config, extras=extras)
        return _text(self.environment.init(row["prompt"])[0])

    def act(self, text: str) -> Reply:
        """What the environment adds to the conversation."""
        environment: Any = self.environment
        stepped = environment.step(text)
        reward = float(stepped["reward"])
        end: End | None = None
        if stepped["done"]:
            is_late = environment.turns >= environment.max_turns > 1
            end = "won" if reward >= 1 else "too_many_turns" if is_late else "lost"
        return Reply(_text(stepped["observations"]), reward, end)

    def close(self) -> None:
        """Release what the environment holds."""
        if self.environment:
            self.environment.close()


def _text(messages: Sequence[Mapping[str, str]]) -> str:
    return "\n\n".join(message["content"] for message in messages)
