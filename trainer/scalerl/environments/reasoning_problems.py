"""Problems of reasoning-gym as episodes of one turn, as `reasoning_gym:chain_sum`.

The reward is 2 x score - 1, which is 1 for a right answer. Each seed is a problem.
"""

import json
from collections.abc import Mapping
from typing import Any

from scalerl.environments.protocol import Reply
from scalerl.gym import data_set


def made(name: str, settings: dict[str, Any]) -> "ReasoningProblem":
    """Problems of this data set; `settings` are keys of its configuration."""
    return ReasoningProblem(name, json.dumps(settings))


class ReasoningProblem:
    """One problem, and one answer."""

    def __init__(self, name: str, config: str) -> None:
        self.name, self.config = name, config
        data_set(name, config, size=1, seed=0)  # refuses an unknown name or key

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """The question."""
        self.source = data_set(self.name, self.config, size=1, seed=seed)
        self.problem = self.source[0]
        return self.problem["question"]

    def act(self, text: str) -> Reply:
        """The library's own score of the answer."""
        score = float(self.source.score_answer(text.strip(), self.problem))
        return Reply("", 2 * score - 1, "won" if score >= 1 else "lost")

    def demonstrate(self) -> str:
        """The right answer."""
        return str(self.problem["answer"])
