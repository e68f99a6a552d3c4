"""What Slurm wrote of a job itself: the output of its batch script and of what died before or around the training."""

from pathlib import Path

from ablations.home.home import Home
from ablations.slurm.submissions import Submission

TAIL_BYTES = 8192
OUT_OF_MEMORY = ("exceeded memory limit", "oom-kill", "oom_kill", "Out Of Memory")
"""How Slurm's daemon says it on clusters whose jobs it ends for their memory, whatever state they then have."""


def logs_of_job(home: Home, submission: Submission, run_id: str) -> list[Path]:
    """The files a run's job printed into: `17_3_0_log.err` of task 3 of an array, `17_0_log.err` of a single job."""
    job, folder = submission.task_ids().get(run_id), log_folder(home, submission)
    return [] if job is None else [*folder.glob(f"{job}_*_log.out"), *folder.glob(f"{job}_*_log.err")]


def log_folder(home: Home, submission: Submission) -> Path:
    """Where submitit keeps what it hands to the jobs of a submission, and they what they print."""
    return home.sweep(submission.sweep) / "submitit" / submission.name


def tail(path: Path) -> str:
    """The end of a log."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace")


def tells_of_memory(logs: list[Path]) -> bool:
    """Whether a job was ended for taking more memory than it asked for."""
    return any(word in text for text in map(tail, logs) for word in OUT_OF_MEMORY)
