"""The trainer's end of the process in which environments run.

    hosting.start(17, Start(seed=3, row={}))
    hosting.replies()                             [(17, Reply("1-32"))]
    hosting.act(17, "16")

An episode is known by its start and its answers. So a process that died or was ended is replaced, and the episodes of
the others are played again in the new one; what then differs from before is lost, and said.
"""

import mmap
import os
import pickle
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from scalerl.environments.catalogue import EnvironmentUnusable
from scalerl.environments.host import EnvironmentCall
from scalerl.environments.protocol import Reply, Start
from scalerl.errors import Internal
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import End
from scalerl.signals import signals_to_all_blocked

LIBRARY_LIMIT_S = 120.0
"""Time for the process to start and to import an environment's library."""
GRACE_S = 2.0
"""Time beyond its limit after which a call that did not end by itself is ended with its process."""
SERVE = "import sys; from scalerl.environments.host import serve; serve(int(sys.argv[1]))"


class EnvironmentGone(Internal):
    """The process of the environments ended or hangs; the message is what the call at fault is told."""

    def __init__(self, message: str, end: End = "error") -> None:
        super().__init__(message)
        self.end: End = end


@dataclass(kw_only=True)
class Played:
    """An episode so far: its start, the policy's answers, and what the environment said to each."""

    start: Start
    said: list[str] = field(default_factory=list)
    heard: list[Reply] = field(default_factory=list)
    """The first text, then a reply for each answer; fewer while replies are awaited."""

    def calls(self, key: int) -> list[EnvironmentCall]:
        """All requests of this episode so far."""
        start = EnvironmentCall(what="start", key=key, seed=self.start.seed, row=self.start.row)
        return [start, *(EnvironmentCall(what="act", key=key, text=said) for said in self.said)]


class Hosting:
    """Episodes of one task in a process of their own, which starts with the first of them."""

    def __init__(self, settings: Episodes) -> None:
        self.settings = settings
        self.played: dict[int, Played] = {}
        self.deaths = 0
        """Processes that ended or were ended because of an environment."""
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: list[EnvironmentCall] = []
        """Requests that are not sent yet."""
        self._sent: list[EnvironmentCall] = []
        """Requests whose replies are awaited."""
        self._found: list[tuple[int, Reply]] = []
        self._lost: dict[int, Reply] = {}
        """What is said for episodes that ended their process, or were not the same when played again."""

    @property
    def awaits(self) -> bool:
        """True if a reply is to come."""
        return bool(self._found) or any(ask.what != "close" for ask in (*self._asked, *self._sent))

    def start(self, key: int, start: Start) -> None:
        """Begin the episode; its first text comes as a reply."""
        self.played[key] = Played(start=start)
        self._asked.append(EnvironmentCall(what="start", key=key, seed=start.seed, row=start.row))

    def act(self, key: int, text: str) -> None:
        """Give the policy's answer of one turn."""
        self.played[key].said.append(text)
        self._asked.append(EnvironmentCall(what="act", key=key, text=text))

    def demonstrate(self, key: int) -> None:
        """Ask for an answer that may be given now; it comes as a reply, and is not given."""
        self._asked.append(EnvironmentCall(what="demonstrate", key=key))

    def forget(self, key: int) -> None:
        """End the episode."""
        if self.played.pop(key, None) and key not in self._lost:
            self._asked.append(EnvironmentCall(what="close", key=key))
        self._lost.pop(key, None)

    def replies(self, *, wait_s: float | None = None) -> list[tuple[int, Reply]]:
        """Replies by episode, in the order of the requests; None waits for all, a number for that long at most.

        Raises EnvironmentUnusable if the process does not start, or has no such environment.
        """
        deadline = None if wait_s is None else time.monotonic() + wait_s
        while self._asked or self._sent:
            if not self._sent:
                self._sent, self._asked = self._asked, []
                self._give(self._sent)
            if not self._receive(deadline):
                break
        found, self._found = self._found, []
        return found

    def open(self) -> None:
        """Start the process if there is none, and play all episodes in it; otherwise the next request does so."""
        if self._process is None:
            self._start_process()
            self._play_again()

    def close(self) -> None:
        """End the process; the next request starts another, in which all episodes are played again."""
        if self._process:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):  # of what it did not read
                    cast(BinaryIO, pipe).close()
            self._process = None

    def state_dict(self) -> dict[str, Any]:
        """Starts and answers of all episodes, and replies not handed out."""
        return {"played": self.played, "found": list(self._found)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`: with the next request, every episode is played again up to where it was."""
        self.close()
        self.played, self._found = state["played"], state["found"]
        self._sent, self._lost = [], {}
        self._asked = [call for key, one in self.played.items() for call in one.calls(key)[len(one.heard) :]]

    # --- the process --------------------------------------------------------------------------------------------------

    def _give(self, asked: list[EnvironmentCall]) -> None:
        """Send requests, without those of lost episodes, to a process in which all others are as far as they were."""
        self.open()
        self._send([ask for ask in asked if ask.key not in self._lost])

    def _send(self, asked: list[EnvironmentCall]) -> None:
        self._done[:4] = bytes(4)
        self._num_done, self._progress_at = 0, time.monotonic()
        self._say([tuple(ask) for ask in asked])

    def _say(self, message: Any) -> None:
        stdin = cast(BinaryIO, cast(Any, self._process).stdin)
        with suppress(BrokenPipeError):  # its answers end too
            pickle.dump(message, stdin)
            stdin.flush()

    def _receive(self, deadline: float | None) -> bool:
        """Take the replies to what was sent; False if they are not there by the deadline."""
        asked = [ask for ask in self._sent if ask.key not in self._lost]
        try:
            replies = self._message(deadline)
        except EnvironmentGone as gone:
            self._lose(asked, gone)
            self._give(self._sent)
            return True
        if replies is None:
            return False
        told = iter(replies)
        for ask in self._sent:
            reply = self._lost.get(ask.key) or next(told)
            if ask.key in self.played and ask.what != "close":
                if ask.what != "demonstrate":
                    self.played[ask.key].heard.append(reply)
                self._found.append((ask.key, reply))
        self._sent = []
        return True

    def _lose(self, asked: list[EnvironmentCall], gone: EnvironmentGone) -> None:
        """The process is gone: the first call that it did not complete is at fault."""
        num_done = int.from_bytes(self._done[:4], "little")
        self.close()
        self.deaths += 1
        if num_done < len(asked):
            self._lost[asked[num_done].key] = Reply(str(gone), end=gone.end)

    def _play_again(self) -> None:
        """Play all episodes up to what they have heard; those that now hear something else are lost."""
        while True:
            again = {key: one for key, one in self.played.items() if one.heard and key not in self._lost}
            asked: list[EnvironmentCall] = []
            for key, one in again.items():
                asked += one.calls(key)[: len(one.heard)]
            if not asked:
                return
            self._send(asked)
            try:
                told = iter(self._message(None) or [])
            except EnvironmentGone as gone:
                self._lose(asked, gone)
                self._start_process()
                continue
            for key, one in again.items():
                if [next(told) for _ in one.heard] != one.heard:
                    self._lost[key] = Reply("the same seed and answers led to other replies than before", end="error")
            return

    def _start_process(self) -> None:
        page = os.memfd_create("calls")
        os.ftruncate(page, mmap.PAGESIZE)
        self._done = mmap.mmap(page, mmap.PAGESIZE)
        path = os.pathsep.join(path for path in sys.path if path)
        with signals_to_all_blocked():  # the trainer heeds them and closes the pipe
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", SERVE, str(page)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(page,),
                env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},  # sets in the same order on a resume
            )
        os.close(page)
        settings = self.settings
        self._num_done, self._progress_at = 0, time.monotonic() + LIBRARY_LIMIT_S
        self._say((settings.environment, settings.settings, settings.time_limit_s))
        try:
            fault: Any = self._message(None)
        except EnvironmentGone as gone:
            late = f"was not imported and made within {LIBRARY_LIMIT_S:g} s" if gone.end == "timed_out" else gone
            fault = f"environment {settings.title}: {late}"
        if fault:
            self.close()
            raise EnvironmentUnusable(f"task {settings.title!r}: {fault}")

    def _message(self, deadline: float | None) -> Any:
        """The next message of the process; None if there is none by the deadline. Raises EnvironmentGone if it ended or
        hangs."""
        process = cast(Any, self._process)
        while True:
            now = time.monotonic()
            done = int.from_bytes(self._done[:4], "little")
            if done != self._num_done:
                self._num_done, self._progress_at = done, now
            left = max(0.0, self._progress_at + self.settings.time_limit_s + GRACE_S - now)
            wait_s = left if deadline is None else min(left, max(0.0, deadline - now))
            if select.select([process.stdout], [], [], wait_s)[0]:
                try:
                    return pickle.load(process.stdout)
                except (EOFError, pickle.UnpicklingError):
                    code = process.wait()
                    raise EnvironmentGone(f"its process ended with code {code}") from None
            if left == 0:  # and nothing came, however long this process has not looked
                raise EnvironmentGone(f"took more than {self.settings.time_limit_s:g} s", end="timed_out")
            if deadline is not None and time.monotonic() >= deadline:
                return None
