"""Slurm's output about a job: from its batch script, and from anything that died before the training."""

from pathlib import Path

from ablations.home.home import Home
from ablations.slurm.submissions import Submission

JOB_TAIL_BYTES = 8192
OUT_OF_MEMORY = ("exceeded memory limit", "oom-kill", "oom_kill", "Out Of Memory")
"""Messages of Slurm's daemon when it ends a job for its memory, whatever state the job then has."""


def logs_of_job(home: Home, submission: Submission, run_id: str) -> list[Path]:
    """The output files of a run's job: `17_3_0_log.err` for task 3 of an array, `17_0_log.err` for a job."""
    job, folder = submission.task_ids().get(run_id), log_folder(home, submission)
    return [] if job is None else [*folder.glob(f"{job}_*_log.out"), *folder.glob(f"{job}_*_log.err")]


def log_folder(home: Home, submission: Submission) -> Path:
    """The folder for submitit's files of a submission and the output of its jobs."""
    return home.sweep(submission.sweep) / "submitit" / submission.name


def end_of_log(path: Path) -> str:
    """The last part of a log."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - JOB_TAIL_BYTES))
        return file.read().decode(errors="replace")


def tells_of_memory(logs: list[Path]) -> bool:
    """True if a job was ended for using more memory than requested."""
    return any(word in text for text in map(end_of_log, logs) for word in OUT_OF_MEMORY)
