"""Environments of GEM, as `gem:game:Sudoku-v0-easy`, which read the last `\\boxed{}` of an answer.

Rewards of the turns add up to 1 where a game is solved. An answer that cannot be read ends a game with -0.1.
"""

from importlib import import_module
from typing import Any

from scalerl.environments.catalogue import known_id
from scalerl.environments.gymnasium_texts import SteppedText


def made(name: str, settings: dict[str, Any]) -> SteppedText:
    """The environment of this id; `settings` are keyword arguments of its class."""
    gem = import_module("gem")
    paid = import_module("gem.utils.constants").LanguageGameReward
    game = gem.make(known_id(name, gem.envs.registration.ENV_REGISTRY), **settings)
    return SteppedText(game, solved=paid.success_reward, rule_broken=paid.format_error_reward)
