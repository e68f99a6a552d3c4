"""Single-player games of TextArena, as `textarena:Wordle-v0`.

The id that ends in `-raw` is taken, also where the one without is written: others repeat all earlier texts in each one,
and add brackets to answers. Games pay at their end. `won` is a reward of 1 or more, since what is not solved earns the
share that is done; in `Set`, which counts the sets found, it is one set. `Bandit` pays the regret of the last choice:
the best earns 0, and none wins. `FifteenPuzzle` raises an error when it is solved.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from scalerl.environments.catalogue import known_id
from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected

TEXTARENA = import_module("textarena")
OUT_OF_TURNS = re.compile(r"\blimit\b|used all \d+ moves|taken \d+ turns|maximum of \d+ turns")
"""How games say that their own limit of turns is reached."""


def made(name: str, settings: dict[str, Any]) -> "TextArenaGame":
    """The game of this id; `settings` are keyword arguments of its class."""
    ids = TEXTARENA.envs.registration.ENV_REGISTRY
    raw = known_id(name, ids).removesuffix("-raw").removesuffix("-train") + "-raw"
    return TextArenaGame(TEXTARENA.make(raw if raw in ids else name, **settings))


class TextArenaGame:
    """One game of one player."""

    def __init__(self, game: Any) -> None:
        self.game = game

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """Rules and board."""
        self.game.reset(num_players=1, seed=seed)
        if not isinstance(self.game.state, TEXTARENA.SinglePlayerState):
            raise Rejected("the game has several players; training needs a game for one player")
        return self._news()

    def act(self, text: str) -> Reply:
        """What the game says to a move; its reason at the end."""
        if not self.game.step(text)[0]:
            return Reply(self._news())
        rewards, facts = self.game.close()
        paid, reason = rewards[0], str(facts[0].get("reason", ""))
        reward = -1.0 if isinstance(paid, str) else float(paid)  # Countdown gives reward and reason the wrong way round
        if facts[0].get("invalid_move"):
            return Reply(reason, reward, "rules_broken")
        lost = "too_many_turns" if OUT_OF_TURNS.search(reason) else "lost"
        return Reply(reason, reward, "won" if reward >= 1 else lost)

    def _news(self) -> str:
        said = self.game.get_observation()[1]
        own = TEXTARENA.ObservationType.PLAYER_ACTION
        return said if isinstance(said, str) else "\n".join(str(one[1]) for one in said if own not in one)
