"""One attempt at a run whose trainer is a program: starts the command, follows its log, and ends it at the budget.

The program writes the run log itself (`ablations.log`), or this process makes it from a log of the program's own. A
later attempt starts the same command in the same folder, and the program resumes from its own checkpoint.
"""

import json
import math
import os
import signal
import subprocess
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalerl.durable import write_atomically
from scalerl.errors import Cancelled, ProgramFailed
from scalerl.recipe.command import CommandRecipe, ProgramOwnLog
from scalerl.recipe.file_hash import hashes_of_code
from scalerl.run.command_line import (
    CONFIG_FILE,
    command_line,
    config_text,
    environment_of_run,
    fill_placeholders,
    values_of_run,
)
from scalerl.run.error_line import error_of_program
from scalerl.run.run_folder import RunFolder, mode_for
from scalerl.run.run_log import read_rows
from scalerl.run.status_file import StatusFile
from scalerl.sandbox.inside import PR_SET_PDEATHSIG, prctl

POLL_S = 0.1
TRANSLATE_S = 2.0
"""Minimum time between two readings of a program's own log."""
OwnLogReader = Callable[[Path, ProgramOwnLog], Sequence[Mapping[str, Any]]]
"""Reads a program's own log as rows of the run log; ValueError gives the reason if it cannot."""
SIGNAL_MAY_FOLLOW_S = 1.0
"""Maximum delay between a signal to the program and the same signal to this process, as from `scancel`."""
READ_BYTES = 65536
"""Bytes at the end of the program's output that are searched for the error."""


def run_program(
    folder: RunFolder,
    recipe: CommandRecipe,
    seed: int,
    *,
    budget: float,
    status: StatusFile,
    stop_asked: threading.Event,
    read_log: OwnLogReader,
) -> None:
    """Run the program until its log reaches the budget or it ends; `read_log` reads a log of the program's own.

    Raises Cancelled if asked to stop, and ProgramFailed with the end of the program's output if it fails, logs nothing
    in time, or is not the code that was planned.
    """
    _refuse_other_code(recipe)
    folder.work.mkdir(exist_ok=True)
    write_atomically(folder.path / CONFIG_FILE, config_text(recipe.settings).encode(), mode=mode_for(recipe.settings))
    log = ProgramLog(folder)
    if recipe.log is not None:
        place = Path(recipe.folder) / fill_placeholders(
            recipe.log.path, values_of_run(seed=seed, budget=budget, folder=folder)
        )
        log = TranslatedLog(folder, place, recipe.log, read_log)
    begun, before_s = time.monotonic(), folder.read_status().wall_s
    status.beat(every=0.0, threads=recipe.threads, code_versions=(recipe.code_version,))
    with _started(recipe, seed, budget=budget, folder=folder) as program:
        while program.is_alive():
            log.refresh()
            status.beat(**log.progress(), wall_s=before_s + time.monotonic() - begun)
            if stop_asked.is_set() or log.compute >= budget:
                program.end(recipe.grace_s)
            elif log.is_empty and time.monotonic() - begun > recipe.first_row_within_s:
                program.end(recipe.grace_s)
                raise ProgramFailed(
                    f"no evaluation was logged within {recipe.first_row_within_s:g} s (first_row_within_s) in "
                    f"{log.place}{log.remedy}" + _said_at_its_end(folder, status.attempt)
                )
        code = program.code
    log.refresh(at_once=True)
    status.beat(every=0.0, **log.progress(), wall_s=before_s + time.monotonic() - begun)
    reached = f"{log.compute:g} of {budget:g} {recipe.compute}"
    if log.compute >= budget:
        was_ended = program.was_ended or code == 0
        status.write("done", "" if was_ended else f"the program ended {_how(code)} after its budget was reached")
    elif stop_asked.wait(SIGNAL_MAY_FOLLOW_S):
        raise Cancelled("asked to stop")
    elif code != 0:
        raise ProgramFailed(f"the program ended {_how(code)} at {reached}" + _said_at_its_end(folder, status.attempt))
    elif log.is_empty:
        raise ProgramFailed(
            f"the program ended {_how(code)} without logging an evaluation in {log.place}{log.remedy}"
            + _said_at_its_end(folder, status.attempt)
        )
    else:
        ended = f"the program ended by itself {_how(code)} at {reached}, short of its budget"
        status.write(
            "stopped", ended + (f"; its log could not be read to the end: {log.problem}" if log.problem else "")
        )


def no_reader(path: Path, settings: ProgramOwnLog) -> Sequence[Mapping[str, Any]]:
    """Rejects every log: only `platform sweep` supplies a reader."""
    raise ValueError(f"{path}: only `platform sweep` can read a program's own log")


class ProgramLog:
    """The progress in a run log that another process writes, read again when it has changed."""

    remedy = "; call run.log of ablations.start()"
    """Advice if the log stays empty."""
    problem = ""
    """Reason why the log cannot be read at present."""

    def __init__(self, folder: RunFolder) -> None:
        self.place: Path = folder.metrics
        self._folder, self._stamp = folder, (0, 0)
        self._last: dict[str, Any] = {}
        self.refresh()

    def refresh(self, *, at_once: bool = False) -> None:
        """Read the rows again if the file has changed."""
        with suppress(FileNotFoundError):
            found = self._folder.metrics.stat()
            if (found.st_size, found.st_mtime_ns) != self._stamp:
                self._stamp = found.st_size, found.st_mtime_ns
                newest = deque(read_rows(self._folder.metrics, kind="eval"), maxlen=1)
                self._last = newest[0] if newest else {}

    @property
    def is_empty(self) -> bool:
        """True while no evaluation is logged."""
        return not self._last

    @property
    def compute(self) -> float:
        """Compute of the last evaluation; 0 before the first."""
        return self._last.get("compute_gpu_hours", 0.0)

    def progress(self) -> dict[str, Any]:
        """Fields of the status."""
        return {
            "step": self._last.get("step", 0),
            "compute_gpu_hours": self.compute,
            "pass_rate": self._last.get("pass_rate"),
        }


class TranslatedLog(ProgramLog):
    """A log of the program's own, from which the run log is made."""

    def __init__(self, folder: RunFolder, place: Path, settings: ProgramOwnLog, read: OwnLogReader) -> None:
        self._source, self._settings, self._read = place, settings, read
        self._read_at, self._seen = -math.inf, frozenset[tuple[str, int, int]]()
        super().__init__(folder)
        self.place = place

    def refresh(self, *, at_once: bool = False) -> None:
        """Rebuild the run log if the program's has changed, and enough time has passed or `at_once` is set.

        A log that cannot be read leaves the run log as it is. Raises ProgramFailed if the log has lost its beginning.
        """
        if at_once or time.monotonic() - self._read_at > TRANSLATE_S:
            self._read_at = time.monotonic()
            if (seen := _states_of(self._source)) != self._seen:
                self._translate()
                self._seen = seen
        super().refresh()

    @property
    def remedy(self) -> str:
        """Reason why the log cannot be read, or the place where it was expected."""
        return f": {self.problem}" if self.problem else "; see trainer.log of the sweep file"

    def _translate(self) -> None:
        self.problem = ""
        try:
            rows = self._read(self._source, self._settings)
        except ValueError as error:
            self.problem = str(error)
            return
        if rows:
            before = next(read_rows(self._folder.metrics, kind="eval"), None)
            if before and before["step"] < rows[0]["step"]:
                raise ProgramFailed(
                    f"{self._source} began at step {before['step']} and now begins at step {rows[0]['step']}, so its "
                    "compute is too low; let the program continue its log after a restart, or begin again at its start"
                )
            write_atomically(self._folder.metrics, "".join(f"{json.dumps(row)}\n" for row in rows).encode())


def _states_of(path: Path) -> frozenset[tuple[str, int, int]]:
    """Name, size and time of the file, or of each file in the folder."""
    found = set[tuple[str, int, int]]()
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        with suppress(FileNotFoundError):
            found.add((str(one), one.stat().st_size, one.stat().st_mtime_ns))
    return frozenset(found)


@dataclass
class RunningProgram:
    """A program that was started, with all processes of its session."""

    process: subprocess.Popen[bytes]
    was_ended: bool = False
    """True if the platform has sent SIGTERM."""

    @property
    def code(self) -> int:
        """The exit code, or minus the number of the signal."""
        return self.process.wait()

    def is_alive(self) -> bool:
        """False once the program has ended; waits a moment before True."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(POLL_S)
            return False
        return True

    def end(self, grace_s: float) -> None:
        """Send SIGTERM to the program and its processes, and SIGKILL after the grace time."""
        self.was_ended = True
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


@contextmanager
def _started(recipe: CommandRecipe, seed: int, *, budget: float, folder: RunFolder) -> Iterator[RunningProgram]:
    """Context with the running program; processes that it leaves behind are ended with the block."""
    line = command_line(recipe, seed=seed, budget=budget, folder=folder)
    try:
        process = subprocess.Popen(
            line,
            cwd=recipe.folder,
            env=environment_of_run(recipe, seed=seed, budget=budget, folder=folder)
            | {"ABLATIONS_ATTEMPT": uuid.uuid4().hex},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    except OSError as error:
        raise ProgramFailed(
            f"{line[0]} does not start in {recipe.folder} ({error.strerror}); check `command`"
        ) from None
    program = RunningProgram(process=process)
    try:
        yield program
    finally:
        if process.poll() is None:
            program.end(recipe.grace_s)
        program.end(0.0)


def _end_with_parent() -> None:
    """In the new process: get SIGTERM if this process is killed, and leave Slurm's warning signal to this process."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def _refuse_other_code(recipe: CommandRecipe) -> None:
    """Raise ProgramFailed if the code is no longer that of the run's identity."""
    try:
        found = hashes_of_code(Path(recipe.folder), recipe.code)
    except ValueError as error:
        raise ProgramFailed(str(error)) from None
    changed = [name for name in {**recipe.code_sha256, **found} if found.get(name) != recipe.code_sha256.get(name)]
    if changed:
        raise ProgramFailed(
            f"the code has changed since the run was planned ({', '.join(changed)} in {recipe.folder}); restore it, or "
            "start the sweep again, which trains new runs with the new code"
        )


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _said_at_its_end(folder: RunFolder, attempt: int) -> str:
    """What the program said at its end, to follow a reason; empty if it printed nothing."""
    try:
        with folder.log(attempt).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - READ_BYTES))
            return error_of_program(file.read().decode(errors="replace"))
    except FileNotFoundError:
        return ""
