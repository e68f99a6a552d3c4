"""Episodes on any generator: each turn is a request whose prompt is all tokens before it.

    prompt   turn 1   environment   turn 2   environment   turn 3
    [------][======]  [---------]  [======]  [---------]  [======]        sampled: =, mask of the loss

Sampled ids are kept; only what the environment says is tokenised, so the ids of a turn begin with those of the turn
before. While an environment answers, the generator decodes other rollouts.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from scalerl.environments.hosting import Hosting
from scalerl.environments.programs import Asking, Programs
from scalerl.environments.protocol import Reply, Start
from scalerl.generator.conversation import Conversation, InProgress
from scalerl.generator.generator import Generator
from scalerl.generator.random_numbers import one_split_mix_64
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.recipe.episodes import AgentProgram, Episodes, turn_limit
from scalerl.rollout import Prompt
from scalerl.tokens import Tokenizer
from scalerl.weights.hugging_face import Weights

LOOK_FOR_REPLIES_S = 0.05
"""Longest wait for environments on the wall clock, between two looks at orders."""
TURN_SEEDS = 1 << 40
"""Number in the stream of a rollout's seed of the seed of its second turn; its own tokens have the first numbers."""
KEPT_TEXTS = 1024
"""Texts of environments whose tokens are kept: many say the same over and over."""


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
        self._next_turn = lru_cache(KEPT_TEXTS)(tokenizer.next_turn)
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
        episode = InProgress(request=request, key=key, conversations=[Conversation(version=self.version)])
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
        request, tokens, number = episode.request, episode.now.tokens, len(episode.taken)
        first = request.prompt
        limit = min(self._limits[first.task], episode.most)
        if not tokens:
            return request if request.most == limit else replace(request, most=limit)
        prompt = Prompt(
            task=first.task,
            id=f"{first.id}#{request.group}.{request.index}.{number}",
            tokens=first.tokens + tokens,
            answer=first.answer,
            difficulty=first.difficulty,
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
            text = answer.text if answer else ""
            hosting = self._hosting[one.request.prompt.task]
            if isinstance(hosting, Programs):
                episode.now.reward(0.0)  # its reward comes at its end
                hosting.act(episode.key, text, one.rollout)
            else:
                hosting.act(episode.key, text)
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
        arrived = [one for one in self._late if one[0] <= self._now]
        self._late = [one for one in self._late if not one[0] <= self._now]  # also what has no time yet
        return [one for _, key, reply in arrived for one in self._answered(self._by_key[key], reply)]

    def _answered(self, episode: InProgress, reply: Reply | Asking) -> list[Finished]:
        """Give the reply to the policy as its next turn, or end the episode."""
        if isinstance(reply, Asking):
            episode.hear(reply, self.version)
            put = self.inner.waiting.appendleft if episode.taken else self.inner.waiting.append
            put(self._turn(episode))
            return []
        reply, spoken, prompt = episode.fault or reply, episode.conversations[0], episode.request.prompt
        task, hosting = self.tasks[prompt.task], self._hosting[prompt.task]
        end, why = reply.end, reply.text
        if isinstance(hosting, Programs):
            episode.reward(reply.reward)
            spoken.tokens = spoken.tokens or self.tokenizer.eos_ids[:1]  # of a program that asked nothing
        else:
            # The other clocks repeat to the bit.
            spoken.reward(reply.reward, reply.seconds if self.clock == "wall" else 0.0)
        if end is None and len(episode.taken) == task.turns:
            end = "too_many_turns"
        if end is None:
            try:
                said = self._next_turn(why, after=spoken.tokens[-1])
            except ValueError as error:
                end, why = "error", str(error)
            else:
                length = len(prompt.tokens) + len(spoken.tokens) + len(said)
                if length + self._limits[prompt.task] <= task.context_tokens:
                    spoken.tokens += said
                    self.inner.waiting.appendleft(self._turn(episode))
                    return []
                end = "too_long"
        place = episode.request.place
        del self._episodes[place], self._by_key[episode.key]
        self.inner.forget(place)
        hosting.forget(episode.key)
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
