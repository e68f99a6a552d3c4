"""Undoes submissions that failed or were interrupted before Slurm's answer was on disk."""

from ablations.home.home import Home
from ablations.slurm import commands
from ablations.slurm.submission_lock import submitting
from ablations.slurm.submissions import Submission, read_submissions


def undo(home: Home, submission: Submission) -> None:
    """Cancel the jobs of a submission that sbatch rejected or did not confirm, and remove its record."""
    commands.cancel_named(submission.name)
    submission.remove(home)


def forget_interrupted(home: Home, sweep: str) -> list[str]:
    """Undo submissions that were interrupted before Slurm's answer was on disk; returns a message about each.

    Their jobs would have no code to run. A record without a job may also belong to a command that is submitting right
    now, so this waits for the lock.
    """
    if all(one.job for one in read_submissions(home, sweep)):
        return []
    with submitting(home):
        interrupted = [one for one in read_submissions(home, sweep) if one.job is None]
        for one in interrupted:
            undo(home, one)
    return [f"{sweep}: submission {one.name} was interrupted; cancelled any job it had started" for one in interrupted]
