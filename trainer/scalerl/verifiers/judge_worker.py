"""Verdicts of an engine that works on answers (SymPy, `reasoning-gym`), with limits that hold in any thread.

    trainer --pipe--> keeper --fork--> engine

The limits of SymPy and math-verify use signals, so they fail outside the main thread and cannot stop a single long
multiplication. Here the keeper, a single-threaded process with the engine's library but no torch, forks an engine and
asks it about one answer at a time. When an engine ends, the next one is forked in milliseconds, with everything loaded.

An engine is a module with `warm_up()`, which loads and runs once what would slow the first answer; `judge(**asked)`,
which gives a `Judgement`; and `KNOWN`, what it is asked about an answer that is right.

Failures caused by the answer are `wrong`, so that a policy cannot hide them:

* It raises an exception or needs more memory than an engine has.
* It exceeds the time limit. The limit counts the engine's CPU time, so a busy machine changes no verdict.
* It ends its engine. The keeper then asks a new engine `KNOWN`, which it must judge `right`, and the answer once more.
  An answer that ends this engine too is the cause.

Failures of the machinery say nothing about the answer. An engine without a verdict after `WALL_FACTOR` times the limit
plus `WALL_GRACE_S` of wall-clock time is `timed_out`: it was waiting for the CPU. A keeper that was killed, or that has
no engine able to judge `KNOWN`, is `crashed`.

A trainer process has at most `MAX_KEEPERS` keepers of each engine, started on demand; a forked child starts its own. A
keeper ends when its trainer closes the pipe or is gone, an engine at the latest a second after its wall limit.

Pebble's process pool was tried instead. An answer takes as long (0.3 ms), but a worker outlives a killed trainer, and
the next answer after a time limit takes 110 to 140 ms instead of 5. Its workers are forked either from the trainer,
which holds torch, or from the single fork server of a Python process, which others preload.
"""

import atexit
import importlib
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
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Literal, cast

from scalerl.rollout import Judgement, Outcome
from scalerl.signals import signals_to_all_blocked

EngineName = Literal["mathematics.equality", "gym_score"]
"""Module of this package that judges."""
MAX_KEEPERS = 4
KEEPER_START_LIMIT_S = 120.0
MEMORY_BYTES = 1 << 30
"""Address space of an engine; math-verify treats what does not fit as unparsable or unequal."""
SPENT_BYTES = 1 << 28
"""Memory growth, for example of SymPy's tables, after which an engine is replaced, so that memory never decides a
verdict."""
WALL_FACTOR, WALL_GRACE_S = 20.0, 10.0
MOST_QUESTIONS = 3
"""Maximum number of questions per request: the answer, the known one, and the answer again."""


def judge_within(engine: EngineName, asked: Mapping[str, Any], *, time_limit_s: float) -> Judgement:
    """The engine's judgement of one answer, `wrong` past `time_limit_s` of CPU time. Safe in any thread.

    `asked` are the arguments of the engine's `judge`, as JSON can hold them.

    ValueError unless the limit is above 0.
    """
    if time_limit_s <= 0:
        raise ValueError(f"time_limit_s is {time_limit_s}; it must be above 0 seconds")
    keepers = _pools[engine]
    keeper = keepers.get()
    judgement: Judgement | None = None
    try:
        keeper = keeper or Keeper(engine)
        judgement = keeper.ask({"asked": dict(asked), "limit_s": time_limit_s})
    except OSError:  # no process or pipe available
        return Judgement("crashed")
    finally:
        if keeper and not judgement:
            keeper.close()
        keepers.put(keeper if judgement else None)
    return judgement or Judgement("crashed")


class Keeper:
    """The trainer's end of a keeper process."""

    def __init__(self, engine: EngineName) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        with signals_to_all_blocked():  # the trainer heeds them and closes the pipe; a dead keeper would fail its run
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from scalerl.verifiers.judge_worker import keep; keep({engine!r})"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": path},
            )
        self.stdin, self.stdout = cast(BinaryIO, self.process.stdin), cast(BinaryIO, self.process.stdout)
        if read_line(self.stdout.fileno(), KEEPER_START_LIMIT_S) != b"ready":
            self.close()
            raise RuntimeError(f"the verifier {engine} did not start; see its messages on stderr")

    def ask(self, request: dict[str, Any]) -> Judgement | None:
        """Judgement of one request; None if the keeper is gone or silent."""
        try:
            self.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return None
        limit_s = MOST_QUESTIONS * wall_limit_s(request["limit_s"]) + WALL_GRACE_S
        if not (line := read_line(self.stdout.fileno(), limit_s)):
            return None
        outcome, dropped, score = [*line.decode().split("\t"), "", ""][:3]
        return Judgement(cast(Outcome, outcome), dropped, float(score) if score else None)

    def close(self) -> None:
        """End the process."""
        self.stdin.close()
        self.stdout.close()
        self.process.kill()
        self.process.wait()


def wall_limit_s(limit_s: float) -> float:
    """Wall-clock seconds in which any usable machine gives an engine `limit_s` of CPU time."""
    return WALL_FACTOR * limit_s + WALL_GRACE_S


def read_line(source: int, limit_s: float) -> bytes | None:
    """One line without its end from a descriptor; b"" at the end of the file, None at the limit.

    The writer waits for an answer before writing again, so nothing follows the line.
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


IdleKeepers = queue.LifoQueue[Keeper | None]


def idle_keepers() -> IdleKeepers:
    """Idle keepers, last used first; None stands for a keeper not started yet."""
    keepers = IdleKeepers()
    for _ in range(MAX_KEEPERS):
        keepers.put(None)
    return keepers


_pools: defaultdict[EngineName, IdleKeepers] = defaultdict(idle_keepers)
_of_the_parent: list[Mapping[EngineName, IdleKeepers]] = []


def _close_all() -> None:
    for keepers in _pools.values():
        while not keepers.empty():
            if keeper := keepers.get_nowait():
                keeper.close()


def _start_afresh() -> None:
    # The child must not use or destroy the parent's keepers, nor locks that its other threads may hold.
    global _pools
    _of_the_parent.append(_pools)
    _pools = defaultdict(idle_keepers)


os.register_at_fork(after_in_child=_start_afresh)
atexit.register(_close_all)


def keep(engine: EngineName) -> None:
    """Main function of a keeper: one request per line in, one verdict per line out, until the input closes."""
    sys.set_int_max_str_digits(0)  # the verifier has its own bound, and a time limit
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdicts = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output of the parsers must not mix with verdicts

    module = importlib.import_module(f"scalerl.verifiers.{engine}")
    module.warm_up()
    os.write(verdicts, b"ready\n")
    engines = Engines(module)
    for line in sys.stdin.buffer:
        os.write(verdicts, f"{engines.outcome(json.loads(line))}\n".encode())
    engines.close()


class Engines:
    """One engine at a time, and the cause of its end."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.engine: JudgingFork | None = None

    def outcome(self, request: dict[str, Any]) -> str:
        """Outcome of one request."""
        verdict = self.ask(request)
        if verdict == "ended" and self.ask({**request, "asked": self.module.KNOWN}).startswith("right"):
            verdict = self.ask(request)
            if verdict == "ended":
                return "wrong"
        return {"ended": "crashed", "over": "wrong", "raised": "wrong"}.get(verdict, verdict)

    def ask(self, request: dict[str, Any]) -> str:
        """Verdict of one engine, which is replaced after any abnormal one."""
        self.engine = self.engine or JudgingFork(self.module)
        verdict = self.engine.ask(request)
        if verdict in ("timed_out", "ended", "over", "raised") or self.engine.is_spent():
            self.close()
        return verdict

    def close(self) -> None:
        """End the engine, if one is running."""
        if self.engine:
            self.engine.kill()
        self.engine = None


class JudgingFork:
    """A fork of the keeper that judges until it is killed."""

    def __init__(self, module: ModuleType) -> None:
        requests, self.requests = os.pipe()
        self.verdicts, verdicts = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.requests)
                work(module, requests, verdicts)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(requests)
        os.close(verdicts)
        self.bytes_at_start = self._num_bytes()

    def ask(self, request: dict[str, Any]) -> str:
        """Outcome, or `raised`, `over` (time limit), `ended` (by itself), or `timed_out` (wall limit)."""
        try:
            os.write(self.requests, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return "ended"
        verdict = read_line(self.verdicts, wall_limit_s(request["limit_s"]))
        if verdict is None:
            return "timed_out"
        return verdict.decode() or self._why_it_ended()

    def _why_it_ended(self) -> str:
        info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert info is not None
        return "over" if info.si_code == os.CLD_KILLED and info.si_status == signal.SIGPROF else "ended"

    def is_spent(self) -> bool:
        """True if the engine has grown by `SPENT_BYTES`."""
        return self._num_bytes() - self.bytes_at_start > SPENT_BYTES

    def _num_bytes(self) -> int:
        """Address space in bytes; 0 if the engine has just ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def kill(self) -> None:
        """End the process at once."""
        os.close(self.requests)
        os.close(self.verdicts)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def work(module: ModuleType, requests: int, verdicts: int) -> None:
    """Main function of an engine. One timer ends it at the time limit, another if the keeper is gone."""
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            request = json.loads(line)
            signal.setitimer(signal.ITIMER_REAL, wall_limit_s(request["limit_s"]) + 1.0)
            signal.setitimer(signal.ITIMER_PROF, request["limit_s"])
            try:
                judged = module.judge(**request["asked"])
                score = "" if judged.score is None else f"{judged.score}"
                verdict = "\t".join([judged.outcome, " ".join(judged.dropped.split()), score]).rstrip()
            except Exception:  # SymPy, a parser or a scorer may raise anything
                verdict = "raised"
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            os.write(verdicts, f"{verdict}\n".encode())
