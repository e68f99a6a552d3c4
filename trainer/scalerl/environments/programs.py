"""Agent programs of the user's own: a process for each episode, which asks the policy over HTTP, then prints a reward.

    trainer --{"seed": 17, "row": {...}}--> program --messages--> endpoint --Asking--> generator
                                            program <--content--- endpoint <--turn---- generator
    trainer <--{"reward": 1.0, "end": "won"}-- program

A request whose messages continue an earlier conversation word by word is that conversation's next turn, and its tokens
stay as they were sampled; any other request begins a conversation. An interrupted program is started again and given
the answers it had; if it then asks something else, its episode is lost, and that is said.
"""

import json
import math
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import IO, Any, cast

from scalerl.environments.endpoint import BadRequest, ChatAnswer, ChatRequest, Endpoint
from scalerl.environments.protocol import Reply, Start
from scalerl.recipe.episodes import AgentProgram, Episodes
from scalerl.rollout import EPISODE_ENDS, End, Rollout
from scalerl.tokens import Tokenizer
from scalerl.warden import warden

LOOK_AT_PROGRAMS_S = 0.01
"""Time between two looks at programs that work."""
OUTPUT_TAIL = 1 << 16
"""Bytes of a program's output in which its last line is searched."""
PROGRAM_RESULT = '{"reward": 1.0, "end": "won"}'


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A request to the policy: what is said to it, after which of the episode's turns."""

    tokens: tuple[int, ...]
    after: int | None
    """Number of the turn that this continues; None at the start of a conversation."""
    most: int
    """Tokens that the turn may have."""


@dataclass(kw_only=True)
class Exchange:
    """A request of an agent, and the policy's turn, None while it is awaited."""

    asked: ChatRequest
    prompt: tuple[int, ...]
    """All tokens before the turn."""
    answer: ChatAnswer | None = None

    def continued_by(self, asked: ChatRequest) -> int:
        """Number of messages of this conversation, if it goes on with the request; else 0."""
        if self.answer is None:
            return 0
        so_far = [*self.asked.messages, {"role": "assistant", "content": self.answer.content}]
        rest = asked.messages[len(so_far) :]
        goes_on = asked.messages[: len(so_far)] == so_far and all(one["role"] != "assistant" for one in rest)
        return len(so_far) if goes_on and rest else 0


@dataclass(kw_only=True)
class AgentEpisode:
    """An episode so far."""

    start: Start
    exchanges: list[Exchange] = field(default_factory=list)
    is_over: bool = False


@dataclass(kw_only=True)
class _Running:
    """The process of an episode."""

    process: subprocess.Popen[bytes]
    printed: IO[bytes]
    complained: IO[bytes]
    deadline: float
    """When it must have asked or ended."""
    asked: int = 0
    """Number of its requests so far; those it has repeated have their answers."""
    is_asking: bool = False
    limit: End | None = None
    """The limit of its turns or tokens that it has met."""


class Programs:
    """Episodes of one task, each played by a process of its own."""

    def __init__(self, settings: Episodes, tokenizer: Tokenizer, *, limit: int, temperature: float | None) -> None:
        self.settings, self.tokenizer, self.limit, self.temperature = settings, tokenizer, limit, temperature
        self.program = cast(AgentProgram, settings.environment)
        self.episodes: dict[int, AgentEpisode] = {}
        self._queue: deque[int] = deque()
        self._running: dict[int, _Running] = {}
        self._keys: dict[str, int] = {}
        self._found: list[tuple[int, Reply | Asking]] = []
        self._held: dict[int, Reply] = {}
        """Ends of episodes whose last turn the generator still writes."""
        self._news = threading.Condition()
        self._endpoint: Endpoint | None = None

    @property
    def awaits(self) -> bool:
        """True if a program works, or has said something."""
        return bool(self._queue or self._found or any(map(self._works, list(self._running))))

    @property
    def has_not_asked(self) -> int:
        """Number of episodes without a request so far."""
        return sum(not one.exchanges and not one.is_over for one in self.episodes.values())

    def start(self, key: int, start: Start) -> None:
        """Begin the episode; what its program asks comes as a reply."""
        self.episodes[key] = AgentEpisode(start=start)
        self._queue.append(key)

    def act(self, key: int, text: str, turn: Rollout) -> None:
        """Give the policy's turn, and its text without thinking."""
        with self._news:
            self.episodes[key].exchanges[-1].answer = ChatAnswer(
                content=text,
                tokens=tuple(turn.tokens.tolist()),
                logprobs=tuple(turn.logprobs.tolist()),
                truncated=turn.truncated,
            )
            if key in self._held:
                self._found.append((key, self._held.pop(key)))
            elif key in self._running:
                self._running[key].deadline = time.monotonic() + self.settings.time_limit_s
            self._news.notify_all()

    def forget(self, key: int) -> None:
        """End the episode."""
        with self._news:
            self._stop(key)
            self.episodes.pop(key, None)

    def replies(self, *, wait_s: float | None = None) -> list[tuple[int, Reply | Asking]]:
        """Requests and ends by episode, in the order of the episodes; None waits until no program works, a number for
        that long at most."""
        deadline = math.inf if wait_s is None else time.monotonic() + wait_s
        with self._news:
            while self._queue and len(self._running) < self.program.at_once:
                self._launch(self._queue.popleft())
            while True:
                for key in filter(self._works, list(self._running)):
                    run = self._running[key]
                    if run.process.poll() is not None:
                        self._end(key, self._result(run, self.episodes[key]))
                    elif time.monotonic() > run.deadline:
                        self._end(key, Reply(f"took more than {self.settings.time_limit_s:g} s", end="timed_out"))
                if not any(map(self._works, self._running)) or time.monotonic() >= deadline:
                    break
                if self._found and wait_s is not None:
                    break
                self._news.wait(LOOK_AT_PROGRAMS_S)
            found, self._found = sorted(self._found, key=itemgetter(0)), []
            return found

    def close(self) -> None:
        """End all programs and the endpoint."""
        with self._news:
            for key in list(self._running):
                self._stop(key)
        if self._endpoint:
            self._endpoint.close()
            self._endpoint = None

    def state_dict(self) -> dict[str, Any]:
        """Starts, requests and answers of all episodes, and what was not handed out."""
        with self._news:
            return {"episodes": dict(self.episodes), "found": list(self._found), "held": dict(self._held)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`: every program that had not ended is started again."""
        self.close()
        self.episodes, self._found, self._held = state["episodes"], list(state["found"]), state["held"]
        self._queue = deque(key for key, one in self.episodes.items() if not one.is_over)

    # --- processes ----------------------------------------------------------------------------------------------------

    def _launch(self, key: int) -> None:
        if self._endpoint is None:
            self._endpoint = Endpoint(self._ask, self.tokenizer.decode, self.temperature)
        start, secret = self.episodes[key].start, secrets.token_urlsafe(24)
        command = [sys.executable if part == "{python}" else part for part in self.program.command]
        own = {"OPENAI_BASE_URL": self._endpoint.url, "OPENAI_API_KEY": secret, "PYTHONHASHSEED": "0"}
        printed, complained = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps({"seed": start.seed, "row": dict(start.row)}).encode())
            given.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.program.folder,
                    stdin=given,
                    stdout=printed,
                    stderr=complained,
                    start_new_session=True,
                    env={**os.environ, **own, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
                )
            except OSError as error:
                why = f"{command[0]!r} does not start in {self.program.folder} ({error.strerror})"
                self._end(key, Reply(why, end="error"))
                printed.close()
                complained.close()
                return
        warden.guard(process.pid)
        deadline = time.monotonic() + self.settings.time_limit_s
        self._running[key] = _Running(process=process, printed=printed, complained=complained, deadline=deadline)
        self._keys[secret] = key

    def _works(self, key: int) -> bool:
        """True if the program has neither asked nor ended."""
        run, exchanges = self._running[key], self.episodes[key].exchanges
        return run.asked < len(exchanges) or not exchanges or exchanges[-1].answer is not None

    def _end(self, key: int, reply: Reply) -> None:
        """The episode is over; the generator hears of it when it has written the last turn."""
        self._stop(key)
        episode = self.episodes[key]
        episode.is_over = True
        if episode.exchanges and episode.exchanges[-1].answer is None:
            self._held[key] = reply
        else:
            self._found.append((key, reply))

    def _stop(self, key: int) -> None:
        if (run := self._running.pop(key, None)) is None:
            return
        self._keys = {secret: of for secret, of in self._keys.items() if of != key}
        with suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        warden.release(run.process.pid)
        run.printed.close()
        run.complained.close()
        self._news.notify_all()

    def _result(self, run: _Running, episode: AgentEpisode) -> Reply:
        """What a program that has ended says of its episode."""
        line = _last_line(run.printed)
        try:
            result = json.loads(line)
            reward, end = result["reward"], result.get("end") or ("won" if result["reward"] > 0 else "lost")
            is_valid = type(reward) in (int, float) and abs(reward) < 1e30 and end in EPISODE_ENDS
        except (ValueError, TypeError, KeyError, AttributeError):
            is_valid, reward, end = False, 0.0, "error"
        code = run.process.returncode
        if code == 0 and is_valid and episode.exchanges:
            return Reply("", float(reward), end)
        if run.limit:
            return Reply("the program ended without a reward after it had met this limit", end=run.limit)
        if code != 0:
            return Reply(f"the program ended with code {code}: {_last_line(run.complained)[:300]}", end="error")
        if is_valid:
            return Reply("the program ended without asking the policy", end="error")
        return Reply(
            f"the last line that the program printed is {line[:200]!r}; must be like {PROGRAM_RESULT}", end="error"
        )

    # --- requests, in threads of the endpoint -------------------------------------------------------------------------

    def _ask(self, secret: str, asked: ChatRequest) -> tuple[tuple[int, ...], ChatAnswer]:
        """The policy's turn; a program's second request waits for its first."""
        with self._news:
            if (key := self._keys.get(secret)) is None:
                raise BadRequest("the key is none of a rollout in progress; use OPENAI_API_KEY as it is", 401)
            run = self._running[key]
            self._news.wait_for(lambda: not run.is_asking)
            run.is_asking = True
            try:
                exchange = self._exchange(key, run, asked)
                self._news.notify_all()
                self._news.wait_for(lambda: exchange.answer or self._running.get(key) is not run)
                if exchange.answer is None:
                    raise BadRequest("the episode has ended", 410)
                run.deadline = time.monotonic() + self.settings.time_limit_s
                return exchange.prompt, exchange.answer
            finally:
                run.is_asking = False
                self._news.notify_all()

    def _exchange(self, key: int, run: _Running, asked: ChatRequest) -> Exchange:
        """The exchange that the request begins, or repeats in a program that was started again."""
        if self._running.get(key) is not run:
            raise BadRequest("the episode has ended", 410)
        episode, settings = self.episodes[key], self.settings
        before = episode.exchanges[: run.asked]
        kept, after = max(((one.continued_by(asked), at) for at, one in enumerate(before)), default=(0, -1))
        try:
            if kept:
                last = cast(ChatAnswer, before[after].answer).tokens
                earlier = (*before[after].prompt, *last)
                new = self.tokenizer.next_turn(asked.messages[kept:], after=last[-1])
            else:
                earlier, new = (), self.tokenizer.prompt(asked.messages)
        except ValueError as error:
            raise BadRequest(str(error)) from None
        most, prompt = min(asked.most or self.limit, self.limit), (*earlier, *new)
        if len(prompt) + most > settings.context_tokens:
            run.limit = "too_long"
            raise BadRequest(
                f"{len(prompt)} tokens of the prompt and {most} of an answer are more than the context of "
                f"{settings.context_tokens}",
                code="context_length_exceeded",
            )
        if run.asked == settings.turns:
            run.limit = "too_many_turns"
            raise BadRequest(f"the episode has had its {settings.turns} turns", 429)
        run.asked += 1
        if run.asked <= len(episode.exchanges):
            repeated = episode.exchanges[run.asked - 1]
            if repeated.asked != asked:
                self._end(key, Reply("started again, the program asked something else than before", end="error"))
                raise BadRequest("the episode has ended", 410)
            return repeated
        exchange = Exchange(asked=asked, prompt=prompt)
        episode.exchanges.append(exchange)
        self._found.append((key, Asking(tokens=new, after=after if kept else None, most=most)))
        return exchange


def _last_line(file: IO[bytes]) -> str:
    """Last line of a file that is not blank; empty if there is none in its last OUTPUT_TAIL bytes."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - OUTPUT_TAIL))
    return (file.read().decode(errors="replace").strip().splitlines() or [""])[-1]
