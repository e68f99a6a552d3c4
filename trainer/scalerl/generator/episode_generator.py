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
from scalerl.environments.programs import Asking, Programs
from scalerl.environments.protocol import Reply, Start
from scalerl.generator.generator import Generator
from scalerl.generator.random_numbers import one_split_mix_64
from scalerl.generator.request import NEVER, Finished, Request, StepWork
from scalerl.recipe.episodes import AgentProgram, Episodes, turn_limit
from scalerl.rollout import End, Episode, Prompt, Rollout, Turn
from scalerl.tokens import Tokenizer
from scalerl.weights.hugging_face import Weights

LOOK_FOR_REPLIES_S = 0.05
"""Longest wait for environments on the wall clock, between two looks at orders."""
TURN_SEEDS = 1 << 40
"""Number in the stream of a rollout's seed of the seed of its second turn; its own tokens have the first numbers."""


@dataclass(kw_only=True)
class Conversation:
    """Tokens of the policy's turns and of what was said around them."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    truncated: bool = False
    """True if the last turn was cut."""

    def take(self, turn: Rollout) -> None:
        """Append a turn of the policy."""
        start = len(self.tokens)
        self.tokens += turn.tokens.tolist()
        self.logprobs += turn.logprobs.tolist()
        self.versions += turn.versions.tolist()
        self.forced += turn.forced.tolist()
        self.turns.append(Turn(start=start, stop=len(self.tokens), reward=0.0))
        self.truncated = turn.truncated

    def hear(self, tokens: tuple[int, ...], version: int) -> None:
        """Append what was said to the policy, while it had weights of this version."""
        self.tokens += tokens
        self.logprobs += [0.0] * len(tokens)
        self.versions += [version] * len(tokens)
        self.forced += [False] * len(tokens)

    def rollout(self, prompt: Prompt, end: End, why: str, task: Episodes, others: tuple[Rollout, ...] = ()) -> Rollout:
        """The whole conversation of an episode that ended in this way, with its `others`."""
        by_turn = task.credit == "turn"
        turns = tuple(self.turns)
        return Rollout(
            prompt=prompt,
            tokens=np.array(self.tokens, dtype=np.int64),
            logprobs=np.array(self.logprobs, dtype=np.float32),
            versions=np.array(self.versions, dtype=np.int32),
            forced=np.array(self.forced, dtype=np.bool_),
            truncated=self.truncated or end == "too_long",
            episode=Episode(turns=turns, end=end, why=why, discount=task.discount, by_turn=by_turn),
            others=others,
        )


@dataclass(kw_only=True)
class InProgress:
    """An episode that has begun."""

    request: Request
    key: int
    """Number of the episode, for its environment."""
    conversations: list[Conversation] = field(default_factory=lambda: [Conversation()])
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
        self.now.take(turn)
        self.taken.append((self.at, len(self.now.tokens)))

    def hear(self, asked: Asking, version: int) -> None:
        """Append what an agent program says, to the conversation that it continues, or to one that begins with what it
        shares with another."""
        self.most = asked.most
        at, shared = (0, 0) if asked.after is None else self.taken[asked.after]
        if len(self.conversations[at].tokens) != shared:
            given = self.conversations[at].tokens[:shared]
            at = len(self.conversations)
            self.conversations.append(Conversation())
            self.conversations[at].hear(tuple(given), version)
        self.at = at
        self.now.hear(asked.tokens, version)

    def rollout(self, end: End, why: str, task: Episodes) -> Rollout:
        """The whole episode; what a program says and how it ends belongs to all of its conversations."""
        (first, *rest), prompt = self.conversations, self.request.prompt
        others = tuple(one.rollout(prompt, end, why, task) for one in rest if one.turns)
        return first.rollout(prompt, end, why, task, others)


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
        temperature: float,
        clock: Clocks,
    ) -> None:
        super().__init__(inner.slots)
        self.inner, self.tasks, self.tokenizer, self.clock = inner, tasks, tokenizer, clock
        self.version = inner.version
        self._limits = {name: turn_limit(task, max_tokens) for name, task in tasks.items()}
        self._hosting: dict[str, Hosting | Programs] = {
            name: Programs(task, tokenizer, limit=self._limits[name], temperature=temperature)
            if isinstance(task.environment, AgentProgram)
            else Hosting(task)
            for name, task in tasks.items()
        }
        self._programs = [one for one in self._hosting.values() if isinstance(one, Programs)]
        self._open()
        self._episodes: dict[tuple[int, int], InProgress] = {}
        """Episodes by group and index."""
        self._by_key: dict[int, InProgress] = {}
        self._next_key = 0
        self._late: list[tuple[float, int, Reply | Asking]] = []
        """Replies on their way on the virtual clock: when they arrive, NaN until that is known."""
        self._now = 0.0

    # --- what a schedule asks -----------------------------------------------------------------------------------------

    @property
    def active(self) -> int:
        return self.inner.active

    @property
    def busy(self) -> bool:
        if self.inner.busy or (self.clock == "wall" and self._awaits) or any(one.awaits for one in self._programs):
            return True
        return any(due <= self._now for due, _, _ in self._late)

    @property
    def has_room(self) -> bool:
        unasked = sum(one.has_not_asked for one in self._programs)
        return self.inner.has_room and self.inner.active + len(self.inner.waiting) + unasked < self.slots

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
        hosting = self._hosting[request.prompt.task]
        hosting.start(key, cast(Start, request.prompt.answer))
        if isinstance(hosting, Programs):
            episode.has_started = True  # it says its first text when it asks
        else:
            self.inner.submit([self._turn(episode)])

    def _turn(self, episode: InProgress) -> Request:
        """Request for the next turn; the first is the request itself, whose prompt the group shares."""
        request, number = episode.request, len(episode.taken)
        limit = min(self._limits[request.prompt.task], episode.most)
        if not episode.now.tokens:
            return Request(**{**vars(request), "most": limit})
        prompt = Prompt(
            task=request.prompt.task,
            id=f"{request.prompt.id}#{request.group}.{request.index}.{number}",
            tokens=(*request.prompt.tokens, *episode.now.tokens),
            answer=request.prompt.answer,
            difficulty=request.prompt.difficulty,
        )
        return Request(
            prompt=prompt,
            group=request.group,
            index=request.index,
            seed=one_split_mix_64(request.seed, TURN_SEEDS + number),
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
            hosting = self._hosting[one.request.prompt.task]
            if isinstance(hosting, Programs):
                hosting.act(episode.key, answer.text if answer else "", one.rollout)
            else:
                hosting.act(episode.key, answer.text if answer else "")
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
                    episode.fault = _fault_of_start(cast(Reply, reply), cast(Start, episode.request.prompt.answer))
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

    def _answered(self, episode: InProgress, reply: Reply | Asking) -> list[Finished]:
        """Give the reply to the policy as its next turn, or end the episode."""
        if isinstance(reply, Asking):
            episode.hear(reply, self.version)
            put = self.inner.waiting.appendleft if episode.taken else self.inner.waiting.append
            put(self._turn(episode))
            return []
        reply = episode.fault or reply
        task, spoken = self.tasks[episode.request.prompt.task], episode.conversations[0]
        took = reply.seconds if self.clock == "wall" else 0.0  # the other clocks repeat to the bit
        if spoken.turns:
            spoken.turns[-1] = replace(spoken.turns[-1], reward=reply.reward, environment_s=took)
        elif not spoken.tokens:  # a program that asked nothing
            spoken.hear(self.tokenizer.eos_ids[:1], self.version)
        end, why, tokens = reply.end, reply.text, ()
        if end is None and len(episode.taken) == task.turns:
            end = "too_many_turns"
        if end is None:
            try:
                tokens = self.tokenizer.next_turn(reply.text, after=spoken.tokens[-1])
            except ValueError as error:
                end, why = "error", str(error)
        length = len(episode.request.prompt.tokens) + len(spoken.tokens) + len(tokens)
        if end is None and length + self._limits[task.title] > task.context_tokens:
            end = "too_long"
        if end is None:
            spoken.hear(tokens, spoken.versions[-1])
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
            if isinstance(hosting, Hosting):
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
