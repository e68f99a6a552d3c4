"""What Slurm wrote of a job itself: the output of its batch script and of what died before or around the training."""

from pathlib import Path

from ablations.home import Home
from ablations.slurm.submissions import Submission

TAIL_BYTES = 8192
OUT_OF_MEMORY = ("exceeded memory limit", "oom-kill", "oom_kill", "Out Of Memory")
"""How Slurm's daemon says it on clusters whose jobs it ends for their memory, whatever state they then have."""


def job_logs(home: Home, submission: Submission, run_id: str) -> list[Path]:
    """The files that a run's job printed into, those with something in them, the errors last."""
    job = submission.task_ids().get(run_id)
    folder = log_folder(home, submission)
    found = (folder / f"{job}_0_log.{kind}" for kind in ("out", "err"))
    return [path for path in found if path.exists() and path.stat().st_size > 0]


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
