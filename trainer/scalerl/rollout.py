"""Records passed between prompts, generator, verifier and learner; numpy only, so they can be sent to any process."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["right", "wrong", "unparsable", "timed_out", "crashed"]
"""Verdict on one answer. The last two mean that the verifier failed, so the answer was not judged."""


End = Literal["won", "lost", "rules_broken", "too_many_turns", "too_long", "timed_out", "error"]
"""Why an episode ended. The last two say nothing about the policy, so such an episode is counted and not trained on."""
EPISODE_ENDS: tuple[End, ...] = get_args(End)
OUTCOME_OF_END: Mapping[End, Outcome] = {
    "won": "right",
    "lost": "wrong",
    "rules_broken": "unparsable",
    "too_many_turns": "wrong",
    "too_long": "wrong",
    "timed_out": "timed_out",
    "error": "crashed",
}


@dataclass(frozen=True)
class Judgement:
    """A verifier's judgement of one answer: `Judgement("right", dropped="the unit 'apples'")`."""

    outcome: Outcome
    dropped: str = ""
    """Text ignored when reading the answer, which makes the outcome doubtful; empty if the whole answer was read."""
    score: float | None = None
    """Partial score in [0, 1] of an answer that is not right; None if the task has none."""
    earned: float | None = None
    """Sum of the rewards that an environment gave; None without an environment."""
    fault: str = ""
    """Why the environment failed, in its words; empty if it did not, or there is none."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One question, identified by its task and id.

    Prompt(task="k_smallest", id="3:k9a2", tokens=(8, 4, 25, 14, 15, 2), answer="29a", difficulty=4)
    """

    task: str
    id: str
    tokens: tuple[int, ...] = field(compare=False)
    answer: Any = field(compare=False)
    """Reference that the task's verifier compares a response with."""
    difficulty: float = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of the policy in an episode: `Turn(start=14, stop=19, reward=0.0)`."""

    start: int
    """Index of its first token in the rollout's tokens."""
    stop: int
    """Index after its last token; what the environment answers stands from here to the start of the next turn."""
    reward: float
    """What the environment gave for it."""
    environment_s: float = 0.0
    """Seconds that the environment took to answer, on the wall clock."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """Turns of one rollout, and how it ended."""

    turns: tuple[Turn, ...]
    end: End
    why: str = ""
    """Reason in the environment's own words; empty if it gave none."""
    discount: float = 1.0
    """Factor by which a reward counts less for each turn before it."""
    by_turn: bool = False
    """True if each turn has its own advantage."""

    @property
    def earned(self) -> float:
        """Sum of the rewards of all turns, discounted."""
        return math.fsum(self.discount**number * turn.reward for number, turn in enumerate(self.turns))

    def rewards(self, total: float) -> list[float]:
        """Rewards of the turns if the rollout got `total`: what it got beside its environment's rewards, such as a
        length penalty, belongs to the last turn."""
        *before, last = (turn.reward for turn in self.turns)
        return [*before, last + (total - self.earned)]


def returns_to_go(rewards: Sequence[float], discount: float) -> list[float]:
    """G_t = r_t + discount G_(t+1) of each turn: returns_to_go([0, 1], 0.5) is [0.5, 1]."""
    return [*accumulate(reversed(rewards), lambda later, reward: reward + discount * later)][::-1]


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One sampled answer or episode, token by token: who chose each token, its log-probability, and the weights in use.

    The tokens of an episode are those of all turns, with what the environment said between them.
    """

    prompt: Prompt
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    """Behaviour log-probability of each token; 0 for forced tokens."""
    versions: NDArray[np.int32]
    """Weight version that chose each token."""
    forced: NDArray[np.bool_]
    """True for tokens forced by the interruption rather than sampled from the policy."""
    truncated: bool
    """True if the token limit came before the end of the sequence."""
    episode: Episode | None = None
    """Turns and end; None for a task of one prompt and one answer."""
    others: tuple["Rollout", ...] = ()
    """Other conversations of the same episode: an agent that rewrites its history begins a new one. What it shares with
    another stands in both, and is a turn in one. All have the reward and advantage of the first."""

    @property
    def samples(self) -> tuple["Rollout", ...]:
        """Every conversation, each a sequence in a batch."""
        return (self, *self.others)

    @property
    def written(self) -> NDArray[np.bool_]:
        """True for tokens of the policy's turns, sampled or forced; False for what the environment said."""
        if self.episode is None:
            return np.ones(len(self.tokens), dtype=np.bool_)
        written = np.zeros(len(self.tokens), dtype=np.bool_)
        for turn in self.episode.turns:
            written[turn.start : turn.stop] = True
        return written

    @property
    def num_written(self) -> int:
        """Number of tokens of the policy's turns."""
        if self.episode is None:
            return len(self.tokens)
        return sum(turn.stop - turn.start for one in self.samples if one.episode for turn in one.episode.turns)


@dataclass(frozen=True, kw_only=True)
class Group:
    """All rollouts from one draw of a prompt, with rewards and outcomes in the same order."""

    prompt: Prompt
    rollouts: tuple[Rollout, ...]
    rewards: tuple[float, ...]
    outcomes: tuple[Outcome, ...]
    dropped: tuple[str, ...] = ()
    """Text ignored in each answer (see `Judgement`); no entries if every answer was read whole."""

    @property
    def start_version(self) -> int:
        """Oldest weights that chose a token of this group."""
        return min(int(rollout.versions[0]) for rollout in self.rollouts)

    @property
    def pass_rate(self) -> float:
        """Share of right answers."""
        return sum(outcome == "right" for outcome in self.outcomes) / len(self.outcomes)

    @property
    def is_credited_by_turn(self) -> bool:
        """True if these are episodes whose turns have their own advantages."""
        return any(one.episode is not None and one.episode.by_turn for one in self.rollouts)

    @property
    def zero_variance(self) -> bool:
        """True if every rollout got the same reward; with credit by turn, if no two that are compared differ."""
        if not self.is_credited_by_turn:
            return len(set(self.rewards)) == 1
        pairs = zip((one.episode for one in self.rollouts), self.rewards, strict=True)
        returns = [returns_to_go(one.rewards(total), one.discount) for one, total in pairs if one]
        return all(len({*of_turn} - {None}) == 1 for of_turn in zip_longest(*returns))
