"""The sandbox: runs one program within its limits and leaves nothing behind."""

import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import IO

from scalerl.errors import SandboxFailed, SandboxTimedOut, SandboxUnavailable
from scalerl.sandbox.isolation import ENVIRONMENT, STRONGEST_FIRST, IsolationName, prepared
from scalerl.sandbox.limits import LimitName, Limits, ProgramEnd
from scalerl.sandbox.processes import descendants, shared_out_bytes

START_UP_S = 30.0
"""Time limit for starting; exceeding it is the machine's failure, not the program's."""
LIMITS_POLL_S = 0.05
END_S = 30.0
"""Time limit for ending: everything is killed at once when a program ends, so a slower machine has failed."""
CHUNK_BYTES = 1 << 16
SEALED = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

PROBE_PROGRAM = """
import json, os, random
for path in ("probe", "/dev/null"):
    with open(path, "w") as file:
        file.write("x")
print(json.dumps(sorted(os.listdir("."))))
"""


class Sandbox:
    """Runs isolated programs: `Sandbox().run("print(2 + 2)", stdin="", limits=Limits()).stdout`.

    Several threads may share one sandbox. The constructor tries which isolation works here, strongest first, and raises
    SandboxUnavailable if none does.
    """

    isolation: IsolationName
    """Isolation in use; `isolation.py` says what each one promises."""

    def __init__(self, *, use: IsolationName | None = None) -> None:
        """`use` forces one isolation."""
        allowed = STRONGEST_FIRST if use is None else (use,)
        reasons = []
        for isolation in allowed:
            self.isolation = isolation
            try:
                self._probe()
            except SandboxFailed as error:
                reasons.append(f"  {isolation}: {error}")
            else:
                return
        raise SandboxUnavailable(
            "sandbox: this machine cannot isolate programs, so it cannot run those written by the policy\n"
            + "\n".join(reasons)
            + "\nInstall bubblewrap or allow user namespaces (sysctl user.max_user_namespaces)"
        )

    def _probe(self) -> None:
        probe = self.run(PROBE_PROGRAM, stdin="", limits=Limits())
        if probe.stdout != '["probe"]\n':
            raise SandboxFailed(f"a program cannot use its folder: {probe.stdout.strip()} {probe.stderr.strip()}")

    def run(self, program: str, *, stdin: str | int, limits: Limits, stdout: int = subprocess.PIPE) -> ProgramEnd:
        """Run Python text as `__main__`; returns once the program and all its processes are gone.

        `stdin` is text or a descriptor. Output is in `ProgramEnd`, or goes uncounted to the descriptor `stdout`. Raises
        SandboxFailed only if the sandbox itself fails; anything the program does is in `ProgramEnd`.
        """
        with ExitStack() as stack:
            program_file = stack.enter_context(_text_file("program", program))
            stdin_file = stack.enter_context(_text_file("stdin", stdin)) if isinstance(stdin, str) else stdin
            control_read, control_write = _pipe(stack)
            status_read, status_write = _pipe(stack)
            fds = {
                "control_fd": control_read.fileno(),
                "status_fd": status_write.fileno(),
                "program_fd": program_file.fileno(),
            }
            command = prepared(self.isolation, limits, fds)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=stdin_file,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    pass_fds=tuple(fds.values()),
                    env=ENVIRONMENT,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxFailed(f"{command[0]} did not start: {error}") from error
            stack.enter_context(_ended(process, control_write))
            control_read.close()
            status_write.close()
            return Watch(process, status_read, control_write, limits).until_the_end()


class Watch:
    """One program seen from outside: collects its output, and ends it if it exceeds a limit."""

    def __init__(self, process: subprocess.Popen[bytes], status: IO[bytes], control: IO[bytes], limits: Limits) -> None:
        self.process = process
        self.control = control
        self.limits = limits
        self.written = {"stdout": bytearray(), "stderr": bytearray(), "status": bytearray()}
        self.limit: LimitName | None = None
        self.started: float | None = None
        self.deadline = time.monotonic() + START_UP_S
        self.next_look = float("inf")
        self.pipes = selectors.DefaultSelector()
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr), ("status", status)):
            if pipe is not None:
                self.pipes.register(pipe, selectors.EVENT_READ, name)

    def until_the_end(self) -> ProgramEnd:
        """Read until every process that could write is gone."""
        with self.pipes:
            while self.pipes.get_map():
                now = time.monotonic()
                if now >= self.deadline:
                    self._late()
                if now >= self.next_look and not self.control.closed:
                    self._look()
                    self.next_look = time.monotonic() + LIMITS_POLL_S
                wait = max(0.0, min(self.deadline, self.next_look) - time.monotonic())
                for key, _ in self.pipes.select(wait):
                    self._read(key)
        return self._finished()

    def _read(self, key: selectors.SelectorKey) -> None:
        chunk = os.read(key.fd, CHUNK_BYTES)
        if not chunk:
            self.pipes.unregister(key.fileobj)
            if key.data == "status":
                self._end(None)
            return
        written = self.written[key.data]
        room = (self.limits.output_kb << 10) - len(written)
        written += chunk[:room]
        if key.data == "status":
            if self.started is None:
                self.started = time.monotonic()
                self.deadline = self.started + self.limits.wall_s
                self.next_look = self.started + LIMITS_POLL_S
        elif len(chunk) > room:
            self._end("output")

    def _look(self) -> None:
        """Compare the total usage of the program's processes with the limits."""
        family = [*chain.from_iterable(descendants(self.process.pid)[1:])]  # below the supervisor
        most_bytes = self.limits.memory_mb << 20
        if sum(process.cpu_s for process in family) > self.limits.cpu_s:
            self._end("cpu")
        elif sum(process.num_threads for process in family) > self.limits.processes:
            self._end("processes")
        elif sum(process.resident_bytes for process in family) > most_bytes and shared_out_bytes(family) > most_bytes:
            self._end("memory")

    def _late(self) -> None:
        if self.started is None and not self.control.closed:
            raise SandboxTimedOut(f"no program started within {START_UP_S:g} s: {self._complaint()}")
        if self.control.closed:
            raise SandboxFailed(f"processes still alive {END_S:g} s after they were killed")
        self._end("wall")

    def _end(self, limit: LimitName | None) -> None:
        """Tell the supervisor to end everything; only the first reason counts."""
        if not self.control.closed:
            _tell_to_end(self.control)
            self.limit = limit
            self.deadline = time.monotonic() + END_S
            self.next_look = float("inf")

    def _finished(self) -> ProgramEnd:
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired as error:
            raise SandboxFailed(f"the sandbox still exists {END_S:g} s after its last process") from error
        if self.started is None:
            raise SandboxFailed(f"no program was started: {self._complaint()}")
        limit, wait_status, cpu_s = self._report()
        exit_code = ended_by = None
        if limit is None:
            code = os.waitstatus_to_exitcode(wait_status)
            if code == -signal.SIGKILL and cpu_s >= 0.99 * self.limits.cpu_s:  # RLIMIT_CPU, which counts in ticks
                limit = "cpu"
            elif code < 0:
                ended_by = -code
            else:
                exit_code = code
        return ProgramEnd(
            stdout=self.written["stdout"].decode(errors="replace"),
            stderr=self.written["stderr"].decode(errors="replace"),
            exit_code=exit_code,
            signal=ended_by,
            limit=limit,
            wall_s=time.monotonic() - self.started,
            cpu_s=cpu_s,
        )

    def _report(self) -> tuple[LimitName | None, int, float]:
        """Limit or wait status, and CPU seconds, as reported by the supervisor."""
        lines = [line.split() for line in self.written["status"].decode().splitlines()]
        match lines:
            case [["started"], ["ended", wait_status, cpu_s]]:
                return self.limit, int(wait_status), float(cpu_s)
            case [["started"], ["limit", "files"]]:
                return "files", 0, 0.0
            case [["started"]] if self.limit is not None:
                return self.limit, 0, 0.0
        raise SandboxFailed(f"the supervisor ended without a report: {lines}, {self._complaint()}")

    def _complaint(self) -> str:
        return self.written["stderr"].decode(errors="replace").strip()[-500:] or "no message"


@contextmanager
def _text_file(name: str, text: str) -> Iterator[IO[bytes]]:
    """Context with read-only text in memory."""
    with open(os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b", buffering=0) as file:
        file.write(text.encode("utf-8", "surrogatepass"))
        file.seek(0)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALED)
        yield file


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return stack.enter_context(open(read, "rb", buffering=0)), stack.enter_context(open(write, "wb", buffering=0))


def _tell_to_end(control: IO[bytes]) -> None:
    """Send a byte, since closing alone goes unnoticed while a process forked meanwhile also holds the pipe."""
    if not control.closed:
        with suppress(BrokenPipeError):
            control.write(b"x")
        control.close()


@contextmanager
def _ended(process: subprocess.Popen[bytes], control: IO[bytes]) -> Iterator[None]:
    """Context that ends `process` on any exit."""
    with process:
        try:
            yield
        finally:
            _tell_to_end(control)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                for descendant in chain.from_iterable(descendants(process.pid)):
                    with suppress(ProcessLookupError):
                        os.kill(descendant.pid, signal.SIGKILL)
                process.kill()
