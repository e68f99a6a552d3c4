"""Verdicts of the mathematics engine under a time limit that holds in any thread and after any fork.

    trainer --pipe--> keeper --fork--> engine

The limits that SymPy and math-verify set themselves use signals: they fail outside the main thread and do not stop one
long multiplication. Here the keeper, a process with one thread, SymPy and no torch, forks an engine and hands it one
pair at a time. At the time limit it kills the engine; the next one is forked in milliseconds, with everything loaded. A
pair at which the engine was killed is `timed_out`, one at which it ended by itself is `crashed`.

A trainer process has one pool of at most `MAX_KEEPERS` keepers, started when first needed; a forked child starts its
own. A keeper ends when its trainer closes the pipe or is gone, an engine at the latest a second after its time limit.

Pebble's process pool was tried instead. An answer takes as long (0.3 ms), but a worker outlives a trainer that was
killed, the next answer after a time limit comes after 110 to 140 ms instead of 5, and its workers are forked either
from the trainer, which holds torch, or from the one fork server that a Python process has, which others preload.
"""

import atexit
import json
import os
import queue
import resource
import selectors
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:  # `batch` loads torch, which the worker does without
    from scalerl.rollout import Outcome
    from scalerl.verifiers.math_equal import Place

MAX_KEEPERS = 4
START_LIMIT_S = 120.0
MEMORY_BYTES = 1 << 30
"""Address space of an engine. math-verify takes what it has no memory for as unparsable, or as unequal."""
GRACE_S = 10.0
"""How long after the time limit a keeper may still answer before it is given up."""


def judge_within(answer: str, gold: str, place: "Place", *, time_limit_s: float) -> "Outcome":
    """The engine's verdict on one pair, `timed_out` after `time_limit_s` seconds of its work. Safe in any thread."""
    if time_limit_s <= 0:
        raise ValueError(f"time_limit_s is {time_limit_s}; it must be above 0 seconds")
    keepers = _pool.keepers
    keeper = keepers.get()
    outcome: Outcome | None = None
    try:
        keeper = keeper or Keeper()
        outcome = keeper.ask({"answer": answer, "gold": gold, "place": place, "limit_s": time_limit_s})
    finally:
        if keeper and not outcome:
            keeper.close()
        keepers.put(keeper if outcome else None)
    return outcome or "crashed"


class Pool:
    """The keepers that have nothing to do; None stands for one not started yet. The one used last is used first."""

    def __init__(self) -> None:
        self.keepers: queue.LifoQueue[Keeper | None] = queue.LifoQueue()
        for _ in range(MAX_KEEPERS):
            self.keepers.put(None)

    def close(self) -> None:
        """End the keepers that are not in use."""
        while not self.keepers.empty():
            if keeper := self.keepers.get_nowait():
                keeper.close()


class Keeper:
    """The trainer's end of a keeper process."""

    def __init__(self) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from scalerl.verifiers.worker import keep; keep()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": path},
        )
        if self._line(START_LIMIT_S) != b"ready":
            self.close()
            raise RuntimeError("the math verifier did not start; what its process wrote to stderr says why")

    def ask(self, request: dict[str, object]) -> "Outcome | None":
        """The verdict on one request, None where the keeper is gone or silent."""
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return None
        line = self._line(cast(float, request["limit_s"]) + GRACE_S)
        return cast("Outcome", line.decode()) if line else None

    def _line(self, limit_s: float) -> bytes:
        """The next line the keeper writes, b"" where it ends or writes none within the limit."""
        return read_line(self._stdout.fileno(), limit_s) or b""

    @property
    def _stdin(self) -> BinaryIO:
        return cast(BinaryIO, self.process.stdin)

    @property
    def _stdout(self) -> BinaryIO:
        return cast(BinaryIO, self.process.stdout)

    def close(self) -> None:
        """End the process."""
        self._stdin.close()
        self._stdout.close()
        self.process.kill()
        self.process.wait()


def read_line(source: int, limit_s: float) -> bytes | None:
    """One line without its end from a descriptor; b"" at the end of the file, None at the limit.

    Whoever writes waits for an answer before writing again, so nothing follows the line.
    """
    deadline = time.monotonic() + limit_s
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            piece = os.read(source, 65536)
            if not piece:
                return b""
            line += piece
    return line[:-1]


_pool = Pool()
_of_the_parent: list[Pool] = []


def _start_afresh() -> None:
    # The parent's keepers, and locks that its other threads may hold, are not the child's to use or to destroy.
    global _pool
    _of_the_parent.append(_pool)
    _pool = Pool()


os.register_at_fork(after_in_child=_start_afresh)
atexit.register(lambda: _pool.close())


def keep() -> None:
    """The keeper's process: a request per line in, a verdict per line out, until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's, who then closes the pipe
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdicts = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the parsers print must not mix with the verdicts

    from scalerl.verifiers.math_equal import warm_up

    warm_up()
    os.write(verdicts, b"ready\n")
    engine: Engine | None = None
    for line in sys.stdin.buffer:
        engine = engine or Engine()
        outcome = engine.ask(line, json.loads(line)["limit_s"])
        if outcome in ("timed_out", "crashed"):
            engine.kill()
            engine = None
        os.write(verdicts, f"{outcome}\n".encode())
    if engine:
        engine.kill()


class Engine:
    """A fork of the keeper that judges until it is killed."""

    def __init__(self) -> None:
        requests, self.requests = os.pipe()
        self.verdicts, verdicts = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.requests)
                work(requests, verdicts)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(requests)
        os.close(verdicts)

    def ask(self, line: bytes, limit_s: float) -> str:
        """The verdict on one request."""
        try:
            os.write(self.requests, line)
        except BrokenPipeError:
            return "crashed"
        verdict = read_line(self.verdicts, limit_s)
        return "timed_out" if verdict is None else verdict.decode() or "crashed"

    def kill(self) -> None:
        """End the process at once."""
        os.close(self.requests)
        os.close(self.verdicts)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def work(requests: int, verdicts: int) -> None:
    """The engine's process. The alarm ends it when the keeper cannot."""
    from scalerl.verifiers.math_equal import judge

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            request = json.loads(line)
            signal.setitimer(signal.ITIMER_REAL, request["limit_s"] + 1.0)
            outcome = judge(request["answer"], request["gold"], request["place"])
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            os.write(verdicts, f"{outcome}\n".encode())
