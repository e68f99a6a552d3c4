"""The process in which environments run, one request after another.

    trainer --list of EnvironmentCall--> host --list of Reply--> trainer          those of one step in one pickle

Each episode has its own state of `random` and of NumPy's global generator, so that episodes beside it change nothing. A
call past its time limit raises in the environment; where one goes on all the same, the trainer ends this process, and
knows by the count of completed calls which one it was. What environments print goes nowhere.
"""

import mmap
import os
import pickle
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.random import mtrand

from scalerl.environments.catalogue import make_environment
from scalerl.environments.protocol import CanDemonstrate, Environment, Reply
from scalerl.errors import Rejected
from scalerl.recipe.own import Own
from scalerl.recipe.own_function import function_of, place_of, raised
from scalerl.rollout import EPISODE_ENDS
from scalerl.sandbox.inside import PR_SET_PDEATHSIG, prctl

_Found = TypeVar("_Found")


class EnvironmentCall(NamedTuple):
    """One request: `EnvironmentCall(what="act", key=17, text="32")`; a tuple, since there is one for each turn."""

    what: Literal["start", "act", "demonstrate", "close"]
    key: int
    """Number of the episode."""
    text: str = ""
    seed: int = 0
    row: Mapping[str, Any] | None = None


class TookTooLong(BaseException):
    """A call is past its time limit; no Exception, so that an environment does not handle it by the way."""


@dataclass(kw_only=True)
class _Running:
    environment: Environment
    random_state: Any
    bits: Any
    """Bit generator of NumPy's global functions; swapping it takes a hundredth of the time of swapping its state."""


class Host:
    """Environments of one name and their episodes, in this process."""

    def __init__(self, name: str | Own, settings: Mapping[str, Any], time_limit_s: float) -> None:
        self.name, self.settings, self.time_limit_s = name, settings, time_limit_s
        self.episodes: dict[int, _Running] = {}
        self._spare: list[np.random.MT19937] = []
        """Bit generators of ended episodes."""

    def answer(self, ask: EnvironmentCall) -> Reply:
        """The environment's reply; one with an end `error` or `timed_out` and its reason if the call fails."""
        began = time.monotonic()
        reply = self._answer(ask)
        return Reply(reply.text, reply.reward, reply.end, time.monotonic() - began)

    def _answer(self, ask: EnvironmentCall) -> Reply:
        try:
            match ask.what:
                case "start":
                    return Reply(self._start(ask))
                case "act":
                    return _checked(self._called(ask.key, lambda one: one.act(ask.text)))
                case "demonstrate":
                    return Reply(self._called(ask.key, _demonstrated))
                case "close":
                    self._close(ask.key)
                    return Reply("")
        except TookTooLong:
            return Reply(f"took more than {self.time_limit_s:g} s", end="timed_out")
        except Exception as error:  # whatever an environment raises costs its own episode
            return Reply(self._reason(error), end="error")

    def _reason(self, error: Exception) -> str:
        if isinstance(error, Rejected):
            return str(error)
        if isinstance(self.name, Own):
            return f"{place_of(self.name, function_of(self.name), error)}: {raised(self.name, error)}"
        return f"{type(error).__name__}: {' '.join(str(error).split())}"

    def _start(self, ask: EnvironmentCall) -> str:
        self._close(ask.key)
        mtrand.set_bit_generator(self._spare.pop() if self._spare else np.random.MT19937())
        with _limited(self.time_limit_s):
            _seed(ask.seed)
            environment = make_environment(self.name, self.settings)
            _seed(ask.seed)
            text = environment.start(ask.seed, ask.row or {})
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"start returned a {type(text).__name__}; must return the first text")
        state, bits = random.getstate(), mtrand.get_bit_generator()
        self.episodes[ask.key] = _Running(environment=environment, random_state=state, bits=bits)
        return str(text)

    def _called(self, key: int, call: Callable[[Any], _Found]) -> _Found:
        running = self.episodes[key]
        random.setstate(running.random_state)
        mtrand.set_bit_generator(running.bits)
        with _limited(self.time_limit_s):
            found = call(running.environment)
        running.random_state, running.bits = random.getstate(), mtrand.get_bit_generator()
        return found

    def _close(self, key: int) -> None:
        if running := self.episodes.pop(key, None):
            if isinstance(running.bits, np.random.MT19937):
                self._spare.append(running.bits)
            with _limited(self.time_limit_s):
                close_environment(running.environment)


def close_environment(environment: Environment) -> None:
    """Call its `close`, which a class of the user's own need not have."""
    if close := getattr(environment, "close", None):
        close()


def _demonstrated(environment: CanDemonstrate) -> str:
    return environment.demonstrate()


def _checked(reply: Any) -> Reply:
    if not isinstance(reply, Reply):
        raise TypeError(f"act returned a {type(reply).__name__}; must return a Reply")
    if not isinstance(reply.text, str) or isinstance(reply.reward, bool) or not isinstance(reply.reward, int | float):
        raise TypeError(f"act returned {reply!r}; a Reply has a text and a number as its reward")
    if not -1e30 < reply.reward < 1e30:
        raise ValueError(f"act returned the reward {reply.reward}; must be finite")
    if reply.end is not None and reply.end not in EPISODE_ENDS:
        raise ValueError(f"act returned the end {reply.end!r}; must be {', '.join(EPISODE_ENDS)} or None")
    return Reply(str(reply.text), float(reply.reward), reply.end)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after `seconds`, and again every second while it goes on."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def serve(counter: int) -> None:
    """Main function of the process: answer until the trainer closes its end.

    `counter` is the descriptor of a shared page that holds the number of completed calls of a list of requests.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # an environment that hangs does not see that the trainer is gone
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    done = mmap.mmap(counter, mmap.PAGESIZE)

    def say(found: Any) -> None:
        pickle.dump(found, answers)
        answers.flush()

    host = Host(*pickle.load(requests))
    try:
        close_environment(make_environment(host.name, host.settings))  # imports its library, outside of any time limit
        say("")
    except Exception as error:  # whatever the library or the user's class raises
        say(str(error) or type(error).__name__)
    while True:
        try:
            asked = pickle.load(requests)
        except EOFError:
            return
        replies: list[Reply] = []
        for ask in asked:
            replies.append(host.answer(EnvironmentCall(*ask)))
            done[:4] = len(replies).to_bytes(4, "little")
        say(replies)
