"""The hold: after three equal failures in a row, the waiting jobs of a sweep are held.

    sweeps/loo/hold.json
    {"cause": "RuntimeError: CUDA error: ...", "since": 1763636574.2, "submissions": ["loo.1f0c9ad2"]}

The job of the last failed run looks back and sets the hold, so no other process is needed. A job that dies before
Python starts cannot do that; a trap in its batch script counts such ends and holds the array (`hold_trap.sh`).
`platform sweep` and `platform retry` replace held jobs with new ones.
"""

import json
import shlex
import time
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.state import State
from ablations.pools.equal_failures import EQUAL_FAILURES, equal_failures, held_because
from ablations.slurm import commands
from ablations.slurm.submissions import OUT_OF_MEMORY, Submission, log_folder, read_submissions
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

NEVER_BEGAN = "their jobs ended before training began; for the reason, run `platform logs`"
TOO_LARGE = "they used more memory than requested; raise resources.mem_gb"
TRAP = files("ablations.slurm") / "hold_trap.sh"


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A hold: `Hold(cause="RuntimeError: ...", since=1763636574.2, submissions=("loo.1f0c9ad2",))`."""

    cause: str
    since: float
    """Seconds since 1970."""
    submissions: tuple[str, ...]

    def __str__(self) -> str:
        return held_because(self.cause)


def read_hold(home: Home, sweep: str) -> Hold | None:
    """The hold on a sweep; None if nothing is held. AblationsError if the record is damaged."""
    of_traps = _hold_of_traps(home, sweep)
    try:
        content = parsed_json(_path(home, sweep).read_bytes())
        more = of_traps.submissions if of_traps else ()
        return Hold(**content | {"submissions": (*content["submissions"], *more)})
    except FileNotFoundError:
        return of_traps
    except (ValueError, TypeError, KeyError) as error:
        raise AblationsError(
            f"{_path(home, sweep)}: not a record of a hold ({error}); delete the file, then replace the held jobs with "
            "`platform cancel` and `platform sweep`"
        ) from error


def lift_hold(home: Home, sweep: str) -> None:
    """Remove the hold; its jobs stay held until they are cancelled."""
    _path(home, sweep).unlink(missing_ok=True)
    for one in read_submissions(home, sweep):
        for name in ("held", "ends"):
            trap_folder(home, one).joinpath(name).unlink(missing_ok=True)


def hold_after_failure(home: Home, sweep: str) -> Hold | None:
    """Hold the waiting jobs of a sweep if its last three ended runs all failed with the same cause.

    Does nothing if the sweep is already held.
    """
    if read_hold(home, sweep):
        return None
    submissions = read_submissions(home, sweep)
    submitted = {run: one.submitted for one in submissions for run in one.runs}
    ends = []
    for run, since in submitted.items():
        status = home.run(run).read_status()
        if status.state in (State.DONE, State.STOPPED, State.FAILED) and status.heartbeat >= since:
            ends.append((status.heartbeat, State(status.state), status.message))
    message = equal_failures([(state, message) for _, state, message in sorted(ends)])
    if message is None:
        return None
    # Match by name: Slurm may have given an id to another job, and scontrol rejects ids of ended jobs.
    waiting = {job.name for job in commands.queue() if job.state == "PENDING"}
    held = [one for one in submissions if one.name in waiting]
    found = Hold(cause=message, since=time.time(), submissions=tuple(one.name for one in held))
    write_atomically(_path(home, sweep), json.dumps(asdict(found)).encode())
    commands.hold(one.job for one in held if one.job is not None)
    return found


def trap_lines(home: Home, submission: Submission) -> list[str]:
    """Batch-script lines that hold the array if three of its jobs in a row die before training begins or run out of
    memory.
    """
    variables = {
        "HOLD_FOLDER": str(trap_folder(home, submission)),
        "HOLD_LOGS": str(log_folder(home, submission)),
        "HOLD_AFTER": str(EQUAL_FAILURES),
        "HOLD_NEVER_BEGAN": NEVER_BEGAN,
        "HOLD_MEMORY": "|".join(OUT_OF_MEMORY),
        "HOLD_TOO_LARGE": TOO_LARGE,
    }
    return [f"export {name}={shlex.quote(text)}" for name, text in variables.items()] + TRAP.read_text().splitlines()


def trap_folder(home: Home, submission: Submission) -> Path:
    """The folder for the files of a submission's traps."""
    return home.sweep(submission.sweep) / "submissions" / submission.name


def _hold_of_traps(home: Home, sweep: str) -> Hold | None:
    held = [one for one in read_submissions(home, sweep) if trap_folder(home, one).joinpath("held").exists()]
    if not held:
        return None
    first = min((trap_folder(home, one) / "held" for one in held), key=lambda path: path.stat().st_mtime)
    return Hold(cause=first.read_text(), since=first.stat().st_mtime, submissions=tuple(one.name for one in held))


def _path(home: Home, sweep: str) -> Path:
    return home.sweep(sweep) / "hold.json"
