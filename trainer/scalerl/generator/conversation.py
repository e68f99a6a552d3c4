"""Conversations of an episode: one, or several if its agent program rewrites its history.

first     [asked][== turn 0 ==][asked][== turn 1 ==]
another   [asked][   turn 0   ][asked in other words][== turn 2 ==]     what both share is a turn in one of them
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scalerl.environments.programs import Asking
from scalerl.environments.protocol import Reply
from scalerl.generator.request import NEVER, Request
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import End, Episode, Prompt, Rollout, Turn


@dataclass(kw_only=True)
class Conversation:
    """Tokens of the policy's turns and of what was said around them."""

    version: int
    """Weights with which it began."""
    tokens: tuple[int, ...] = ()
    chosen: list[tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.bool_]]] = field(default_factory=list)
    """Log-probabilities, versions and forced tokens of each turn."""
    turns: list[Turn] = field(default_factory=list)
    """Turns with their rewards; without the last while that is awaited."""
    truncated: bool = False
    """True if the last turn was cut."""

    def take(self, turn: Rollout) -> None:
        """Append a turn of the policy."""
        self.tokens += tuple(turn.tokens.tolist())
        self.chosen.append((turn.logprobs, turn.versions, turn.forced))
        self.truncated = turn.truncated

    def reward(self, reward: float, environment_s: float = 0.0) -> None:
        """Reward the turn that was taken last."""
        stop = len(self.tokens)
        start = stop - len(self.chosen[-1][0])
        self.turns.append(Turn(start=start, stop=stop, reward=reward, environment_s=environment_s))

    def rollout(self, prompt: Prompt, end: End, why: str, task: Episodes, others: tuple[Rollout, ...] = ()) -> Rollout:
        """The whole conversation of an episode that ended in this way, with its `others`."""
        size = len(self.tokens)
        logprobs, forced = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.bool_)
        versions = np.full(size, self.version, dtype=np.int32)
        for turn, (own_logprobs, own_versions, own_forced) in zip(self.turns, self.chosen, strict=True):
            own = slice(turn.start, turn.stop)
            logprobs[own], versions[own], forced[own] = own_logprobs, own_versions, own_forced
            versions[turn.stop :] = own_versions[-1]  # of what is said to it
        by_turn = task.credit == "turn"
        return Rollout(
            prompt=prompt,
            tokens=np.array(self.tokens, dtype=np.int64),
            logprobs=logprobs,
            versions=versions,
            forced=forced,
            truncated=self.truncated or end == "too_long",
            episode=Episode(turns=tuple(self.turns), end=end, why=why, discount=task.discount, by_turn=by_turn),
            others=others,
        )


@dataclass(kw_only=True)
class InProgress:
    """An episode that has begun."""

    request: Request
    key: int
    """Number of the episode, for its environment."""
    conversations: list[Conversation]
    """One, unless an agent program begins others."""
    at: int = 0
    """Index of the conversation of the turn in progress."""
    taken: list[tuple[int, int]] = field(default_factory=list)
    """Conversation of each turn so far, and its number of tokens after the turn."""
    most: int = NEVER
    """Tokens that the turn in progress may have."""
    has_started: bool = False
    """True once its environment has said the first text."""
    fault: Reply | None = None
    """Why its environment did not start as it did when the task was made."""

    @property
    def now(self) -> Conversation:
        """Conversation of the turn in progress."""
        return self.conversations[self.at]

    def take(self, turn: Rollout) -> None:
        """Append a turn of the policy."""
        now = self.now
        now.take(turn)
        self.taken.append((self.at, len(now.tokens)))

    def hear(self, asked: Asking, version: int) -> None:
        """Append what an agent program says to the conversation that it continues, or to one that begins with what it
        shares with another."""
        self.most = asked.most
        self.at, shared = (0, 0) if asked.after is None else self.taken[asked.after]
        if len(self.now.tokens) != shared:
            given = self.now.tokens[:shared]
            self.at = len(self.conversations)
            self.conversations.append(Conversation(version=version, tokens=given))
        self.now.tokens += asked.tokens

    def reward(self, reward: float) -> None:
        """Reward the last turn of the first conversation, whose reward all conversations have."""
        if turns := self.conversations[0].turns:
            turns[-1] = replace(turns[-1], reward=reward)

    def rollout(self, end: End, why: str, task: Episodes) -> Rollout:
        """The whole episode; what a program says and how it ends belongs to all of its conversations."""
        (first, *rest), prompt = self.conversations, self.request.prompt
        others = tuple(one.rollout(prompt, end, why, task) for one in rest if one.turns)
        return first.rollout(prompt, end, why, task, others)
