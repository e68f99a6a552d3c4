"""The logs of a run: one for each attempt, also as it grows, and the job's output if none began."""

import codecs
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ablations.home.heartbeat import is_locked
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.home.state import RunState, State, read_state
from ablations.slurm.states import SlurmStates
from ablations.slurm.submissions import logs_of_job, read_submissions
from ablations.status.rows import is_going_on
from scalerl.run.run_folder import RunFolder


def attempt_numbers(folder: RunFolder) -> list[int]:
    """Numbers of the attempts that have a log, in order."""
    names = (path.stem.removeprefix("attempt-") for path in (folder.path / "logs").glob("attempt-*.log"))
    return sorted(int(name) for name in names if name.isdigit())


def job_logs(home: Home, run_id: str) -> list[Path]:
    """Output of a run's jobs that ended before an attempt began, oldest first; empty files are skipped.

    Once an attempt begins, everything printed goes to the attempt's log, so the job's own output is older.
    """
    found = [path for path in home.sweeps.glob(f"*/*/*-{run_id}-*/*_log.*") if path.suffix in (".out", ".err")]
    for submission in read_submissions(home):
        found += logs_of_job(home, submission, run_id)
    folder = home.run(run_id)
    began = max((modified(folder.log(number)) for number in attempt_numbers(folder)), default=0.0)
    unbegun = (path for path in found if modified(path.with_suffix(".out")) > began and path.stat().st_size)
    return sorted(unbegun, key=modified)


def modified(path: Path) -> float:
    """Time of the last write to a file, in seconds since 1970; 0 if there is no file."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


LOG_POLL_S = 0.5
READ_STATE_EVERY_S = 2.0
"""Seconds between checks of the run's state, which cost more than reading its log."""


def follow_log(folder: RunFolder, attempt: int | None, has_ended: Callable[[], bool]) -> Iterator[str]:
    """Yield the output of a run: the log of `attempt` until the next attempt begins, or everything from the last
    attempt on if None.

    A head line precedes each later attempt. `has_ended` is asked before the last read, so that nothing is missed.
    """
    reader = None if attempt is None else LogReader(folder.log(attempt))
    number, asked = attempt, float("-inf")
    ended = False
    while True:
        if time.monotonic() - asked >= READ_STATE_EVERY_S:
            ended, asked = has_ended(), time.monotonic()
        numbers = attempt_numbers(folder)
        if number is None and numbers:
            number = numbers[-1]
            reader = LogReader(folder.log(number))
        if number is not None and reader is not None:
            yield reader.read()
            later = [one for one in numbers if one > number]
            if later and attempt is not None:
                return
            if later:
                number = later[0]
                reader = LogReader(folder.log(number))
                yield f"==> attempt {number} <==\n"
                continue
        if ended:
            return
        time.sleep(LOG_POLL_S)


class LogReader:
    """Reads what was added to a file since the last read."""

    def __init__(self, path: Path) -> None:
        self._path, self._position = path, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self) -> str:
        """The new text; empty if nothing was added."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                new = file.read()
        except FileNotFoundError:
            return ""
        self._position += len(new)
        return self._decoder.decode(new)


def run_state(home: Home, run_id: str) -> RunState:
    """The state of a run under its last budget, in any sweep."""
    folder = home.run(run_id)
    own = read_state(folder, folder.read_status().budget_gpu_hours)
    return SlurmStates(home).state(run_id, own)


def has_run_ended(home: Home, run_id: str) -> bool:
    """True if a run is neither training nor waiting. A run that has not started is waiting while a sweep with this run
    is at work."""
    state = run_state(home, run_id)
    at_work = (name for name in home.sweep_names() if is_locked(home.lock_file(name)))
    is_swept = state.state == State.PENDING and any(
        run.id == run_id for name in at_work for run in read_sweep(home, name).plan.runs
    )
    return not is_going_on([state], is_swept=is_swept, now=time.time())
