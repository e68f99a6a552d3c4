"""The logs of a run: one for each attempt, and the job's output if the job died before an attempt began."""

from pathlib import Path

from ablations.home.home import Home
from ablations.slurm.job_logs import logs_of_job
from ablations.slurm.submissions import all_submissions
from scalerl.run.run_folder import RunFolder

RUN_TAIL_BYTES = 16384
"""Bytes read from the end of a log for its last lines."""


def attempt_numbers(folder: RunFolder) -> list[int]:
    """Numbers of the attempts that have a log, in order."""
    names = (path.stem.removeprefix("attempt-") for path in (folder.path / "logs").glob("attempt-*.log"))
    return sorted(int(name) for name in names if name.isdigit())


def job_logs(home: Home, run_id: str) -> list[Path]:
    """Output of a run's jobs that ended before an attempt began, oldest first; empty files are skipped.

    Once an attempt begins, everything printed goes to the attempt's log, so the job's own output is older.
    """
    found = [path for path in home.sweeps.glob(f"*/*/*-{run_id}-*/*_log.*") if path.suffix in (".out", ".err")]
    for submission in all_submissions(home):
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


def tail(path: Path, num_lines: int) -> list[str]:
    """The last non-blank lines of a text file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - RUN_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-num_lines:]
