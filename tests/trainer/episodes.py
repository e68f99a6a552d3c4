"""Episodes written out by hand."""

import numpy as np
from trainer.tiny import make_prompt

from scalerl.rollout import End, Episode, Prompt, Rollout, Turn

HEARD = 30
"""The token of which everything consists that an environment says."""


def played(
    turns: list[list[int]],
    rewards: list[float],
    end: End,
    *,
    heard: int = 1,
    why: str = "",
    by_turn: bool = False,
    prompt: Prompt | None = None,
) -> Rollout:
    """An episode with these tokens in each turn, after each but the last `heard` tokens of the environment."""
    tokens: list[int] = []
    places: list[Turn] = []
    for turn, reward in zip(turns, rewards, strict=True):
        tokens += [HEARD] * heard if places else []
        places.append(Turn(start=len(tokens), stop=len(tokens) + len(turn), reward=reward))
        tokens += turn
    return Rollout(
        prompt=prompt or make_prompt("p"),
        tokens=np.array(tokens, dtype=np.int64),
        logprobs=np.full(len(tokens), -1.0, dtype=np.float32),
        versions=np.zeros(len(tokens), dtype=np.int32),
        forced=np.zeros(len(tokens), dtype=np.bool_),
        truncated=False,
        episode=Episode(turns=tuple(places), end=end, why=why, by_turn=by_turn),
    )
