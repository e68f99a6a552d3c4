"""Episodes on any generator: each turn is a request whose prompt is all tokens before it.

    prompt   turn 1   environment   turn 2   environment   turn 3
    [------][======]  [---------]  [======]  [---------]  [======]        sampled: =, mask of the loss

Sampled ids are kept; only what the environment says is tokenised, so the ids of a turn begin with those of the turn
before. While an environment answers, the generator decodes other rollouts.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from scalerl.environments.hosting import Hosting
from scalerl.environments.protocol import Reply, Start
from scalerl.generator.generator import Generator
from scalerl.generator.random_numbers import split_mix_64
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.recipe.episodes import Episodes, turn_limit
from scalerl.rollout import End, Episode, Prompt, Rollout, Turn
from scalerl.tokens import Tokenizer
from scalerl.weights.hugging_face import Weights

LOOK_FOR_REPLIES_S = 0.05
"""Longest wait for environments on the wall clock, between two looks at orders."""
TURN_SEEDS = 1 << 40
"""Number in the stream of a rollout's seed of the seed of its second turn; its own tokens have the first numbers."""


@dataclass(kw_only=True)
class InProgress:
    """An episode that has begun."""

    request: Request
    key: int
    """Number of the episode, for its environment."""
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    truncated: bool = False
    """True if the last turn was cut."""
    has_started: bool = False
    """True once its environment has said the first text."""
    fault: Reply | None = None
    """Why its environment did not start as it did when the task was made."""

    def take(self, turn: Rollout) -> None:
        """Append a turn of the policy."""
        start = len(self.tokens)
        self.tokens += turn.tokens.tolist()
        self.logprobs += turn.logprobs.tolist()
        self.versions += turn.versions.tolist()
        self.forced += turn.forced.tolist()
        self.turns.append(Turn(start=start, stop=len(self.tokens), reward=0.0))
        self.truncated = turn.truncated

    def hear(self, tokens: tuple[int, ...]) -> None:
        """Append what the environment said."""
        self.tokens += tokens
        self.logprobs += [0.0] * len(tokens)
        self.versions += [self.versions[-1]] * len(tokens)
        self.forced += [False] * len(tokens)

    def rollout(self, end: End, why: str, task: Episodes) -> Rollout:
        """The whole episode."""
        by_turn = task.credit == "turn"
        turns = tuple(self.turns)
        return Rollout(
            prompt=self.request.prompt,
            tokens=np.array(self.tokens, dtype=np.int64),
            logprobs=np.array(self.logprobs, dtype=np.float32),
            versions=np.array(self.versions, dtype=np.int32),
            forced=np.array(self.forced, dtype=np.bool_),
            truncated=self.truncated or end == "too_long",
            episode=Episode(turns=turns, end=end, why=why, discount=task.discount, by_turn=by_turn),
        )


Clocks = Literal["virtual", "wall", "off"]


class EpisodeGenerator(Generator):
    """A generator whose requests may be episodes of some tasks; all others pass through.

    On the virtual clock and off the clock a step waits for the environments; on the wall clock it goes on without.
    """

    def __init__(
        self,
        inner: Generator,
        tasks: Mapping[str, Episodes],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        clock: Clocks,
    ) -> None:
        super().__init__(inner.slots)
        self.inner, self.tasks, self.tokenizer, self.clock = inner, tasks, tokenizer, clock
        self.version = inner.version
        self._limits = {name: turn_limit(task, max_tokens) for name, task in tasks.items()}
        self._hosting = {name: Hosting(task) for name, task in tasks.items()}
        self._open()
        self._episodes: dict[tuple[int, int], InProgress] = {}
        """Episodes by group and index."""
        self._by_key: dict[int, InProgress] = {}
        self._next_key = 0
        self._late: list[tuple[float, int, Reply]] = []
        """Replies on their way on the virtual clock: when they arrive, NaN until that is known."""
        self._now = 0.0

    # --- what a schedule asks -----------------------------------------------------------------------------------------

    @property
    def active(self) -> int:
        return self.inner.active

    @property
    def busy(self) -> bool:
        if self.inner.busy or (self.clock == "wall" and self._awaits):
            return True
        return any(due <= self._now for due, _, _ in self._late)

    @property
    def has_room(self) -> bool:
        return self.inner.has_room

    @property
    def first_waiting(self) -> int | None:
        return self.inner.first_waiting

    @property
    def awaits_environment(self) -> bool:
        return not self.inner.busy and self._awaits

    @property
    def wakes_at(self) -> float | None:
        return min((due for due, _, _ in self._late), default=None)

    @property
    def _awaits(self) -> bool:
        return bool(self._late) or any(one.awaits for one in self._hosting.values())

    def tell_time(self, now: float) -> None:
        self._now = now
        self._late = [
            (now + self._latency(self._by_key[key]) if math.isnan(due) else due, key, reply)
            for due, key, reply in self._late
        ]

    def _latency(self, episode: InProgress) -> float:
        return self.tasks[episode.request.prompt.task].latency_s if self.clock == "virtual" else 0.0

    # --- work ---------------------------------------------------------------------------------------------------------

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; an environment is started now, so that it is there when the first turn ends."""
        for request in requests:
            if request.prompt.task in self.tasks:
                self._begin(request)
            else:
                self.inner.submit([request])

    def _begin(self, request: Request) -> None:
        key, self._next_key = self._next_key, self._next_key + 1
        episode = InProgress(request=request, key=key)
        self._episodes[request.place] = self._by_key[key] = episode
        self.inner.unended[request.place] = None
        self._hosting[request.prompt.task].start(key, cast(Start, request.prompt.answer))
        self.inner.submit([self._turn(episode)])

    def _turn(self, episode: InProgress) -> Request:
        """Request for the next turn; the first is the request itself, whose prompt the group shares."""
        request, number = episode.request, len(episode.turns)
        limit = self._limits[request.prompt.task]
        if number == 0:
            return Request(**{**vars(request), "most": limit})
        prompt = Prompt(
            task=request.prompt.task,
            id=f"{request.prompt.id}#{request.group}.{request.index}.{number}",
            tokens=(*request.prompt.tokens, *episode.tokens),
            answer=request.prompt.answer,
            difficulty=request.prompt.difficulty,
        )
        seed = split_mix_64(np.array([request.seed], np.uint64), np.array([TURN_SEEDS + number], np.uint64))
        return Request(
            prompt=prompt,
            group=request.group,
            index=request.index,
            seed=int(seed[0]),
            cut=request.cut,
            most=limit,
            first=request,
        )

    def step(self) -> tuple[list[Finished], StepWork]:
        done = self._hear_due()
        finished, work = self.inner.step() if self.inner.busy else ([], StepWork())
        for one in finished:
            episode = self._episodes.get(one.request.place)
            if episode is None:
                done.append(one)
                continue
            episode.take(one.rollout)
            answer = self.tokenizer.reader.answer(one.rollout.tokens.tolist())
            self._hosting[one.request.prompt.task].act(episode.key, answer.text if answer else "")
        return done + self._hear(), work

    def _hear(self) -> list[Finished]:
        """Take replies of the environments; returns the episodes that end with them."""
        done: list[Finished] = []
        for hosting in self._hosting.values():
            wait_s = None
            if self.clock == "wall":
                wait_s = 0.0 if self.inner.busy else LOOK_FOR_REPLIES_S
            for key, reply in hosting.replies(wait_s=wait_s):
                episode = self._by_key[key]
                if not episode.has_started:  # the first reply of an episode is its first text
                    episode.has_started = True
                    episode.fault = _fault_of_start(reply, cast(Start, episode.request.prompt.answer))
                elif self._latency(episode) > 0:
                    self._late.append((math.nan, key, reply))
                else:
                    done += self._answered(episode, reply)
        return done

    def _hear_due(self) -> list[Finished]:
        """Take replies that arrive by now on the virtual clock."""
        late, self._late = self._late, []
        self._late = [one for one in late if not one[0] <= self._now]
        arrived = [one for one in late if one[0] <= self._now]
        return [one for _, key, reply in arrived for one in self._answered(self._by_key[key], reply)]

    def _answered(self, episode: InProgress, reply: Reply) -> list[Finished]:
        """Give the reply to the policy as its next turn, or end the episode."""
        reply = episode.fault or reply
        task = self.tasks[episode.request.prompt.task]
        took = reply.seconds if self.clock == "wall" else 0.0  # the other clocks repeat to the bit
        episode.turns[-1] = replace(episode.turns[-1], reward=reply.reward, environment_s=took)
        end, why, tokens = reply.end, reply.text, ()
        if end is None and len(episode.turns) == task.turns:
            end = "too_many_turns"
        if end is None:
            try:
                tokens = self.tokenizer.next_turn(reply.text, after=episode.tokens[-1])
            except ValueError as error:
                end, why = "error", str(error)
        length = len(episode.request.prompt.tokens) + len(episode.tokens) + len(tokens)
        if end is None and length + self._limits[task.title] > task.context_tokens:
            end = "too_long"
        if end is None:
            episode.hear(tokens)
            self.inner.waiting.appendleft(self._turn(episode))
            return []
        place = episode.request.place
        del self._episodes[place], self._by_key[episode.key]
        self.inner.forget(place)
        self._hosting[task.title].forget(episode.key)
        return [Finished(request=episode.request, rollout=episode.rollout(end, why, task))]

    # --- weights, state -----------------------------------------------------------------------------------------------

    def set_weights(self, weights: Weights, version: int) -> None:
        self.inner.set_weights(weights, version)
        self.version = version

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        return self.inner.score(tokens)

    def state_dict(self) -> dict[str, Any]:
        """State of the generator inside, and each episode as its start and answers."""
        return {
            # Later turns follow from their episodes; a checkpoint knows only the task's own prompts.
            **_with_requests(self.inner.state_dict(), lambda one: one.first or one),
            "episodes": list(self._episodes.values()),
            "next_key": self._next_key,
            "late": list(self._late),
            "now": self._now,
            "hosting": {name: one.state_dict() for name, one in self._hosting.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._episodes = {one.request.place: one for one in state["episodes"]}
        self._by_key = {one.key: one for one in state["episodes"]}
        self._next_key, self._late, self._now = state["next_key"], list(state["late"]), state["now"]
        self.inner.unended = dict.fromkeys(self._episodes)
        self.inner.load_state_dict(_with_requests(state, self._present))
        self.version = self.inner.version
        for name, saved in state["hosting"].items():
            self._hosting[name].load_state_dict(saved)
        self._open()

    def _open(self) -> None:
        """Start the environments' processes on the wall clock before it runs."""
        for hosting in self._hosting.values() if self.clock == "wall" else ():
            hosting.open()

    def _present(self, request: Request) -> Request:
        """Request for the turn at which the request's episode is; the request itself without one."""
        episode = self._episodes.get(request.place)
        return self._turn(episode) if episode else request

    def pause(self) -> None:
        self.inner.pause()

    def resume(self) -> None:
        self.inner.resume()

    def check(self) -> None:
        self.inner.check()

    def close(self) -> None:
        self.inner.close()
        for hosting in self._hosting.values():
            hosting.close()


def _with_requests(state: Any, change: Callable[[Request], Request]) -> Any:
    """A generator's state with every request changed."""
    match state:
        case Request():
            return change(state)
        case dict():
            return {name: _with_requests(part, change) for name, part in state.items()}
        case list():
            return [_with_requests(part, change) for part in state]
    return state


def _fault_of_start(reply: Reply, start: Start) -> Reply | None:
    """Why an episode is not the one that its prompt shows; None if it is."""
    if reply.end is not None:
        return reply
    if reply.text != start.text:
        return Reply(f"seed {start.seed} started with another text than when the task was made", end="error")
    return None
