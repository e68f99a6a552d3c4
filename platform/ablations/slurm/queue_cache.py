"""What Slurm said of the jobs of a home folder, asked at most once in ten seconds by all commands together.

What was seen of a job stays on disk: Slurm forgets an ended job after some minutes, and where there is no accounting
nobody else remembers how it ended.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock

from ablations.slurm.commands import Job, SlurmSilent, accounting, queue
from scalerl.run_folder import write_atomically

ASK_EVERY_S = 10.0
"""Seconds between two questions to the controller, whoever asks and whatever the number of runs."""
GONE = "GONE"
"""Not a word of Slurm's: neither the queue nor accounting knows the job any more, nor how it ended."""
ENDED = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "REVOKED", "TIMEOUT", GONE,
    }
)  # fmt: skip
"""States of a job that neither waits nor runs."""

Key = tuple[str, str]
"""Name of the submission and Slurm's id of the job; an id alone is given away again by a controller that forgot."""


class QueueCache:
    """The jobs of all submissions on a home folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def jobs(self, names: set[str], *, since: float, fresh: bool = False) -> dict[Key, Job]:
        """Every job of the submissions of these names that Slurm knows or knew.

        `since` is when the first of them was submitted, in seconds since 1970; `fresh` asks whatever was asked last.
        While the controller does not answer, what was seen last holds: its silence says nothing of the jobs.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            asked, known = self._read()
            if fresh or not 0 <= time.time() - asked < ASK_EVERY_S:
                known = asked_again(known, names, since)
                content = {"asked": time.time(), "jobs": [asdict(job) for job in known.values()]}
                write_atomically(self.path, json.dumps(content).encode())
        return known

    def _read(self) -> tuple[float, dict[Key, Job]]:
        try:
            content = json.loads(self.path.read_bytes())
            jobs = [Job(**job) for job in content["jobs"]]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0.0, {}  # made again from what Slurm says
        return content["asked"], {(job.name, job.id): job for job in jobs}


def asked_again(known: dict[Key, Job], names: set[str], since: float) -> dict[Key, Job]:
    """What is known after asking the queue and, for jobs that left it without a word, accounting."""
    try:
        seen = {(job.name, job.id): job for job in queue() if job.name in names}
        left = {key: job for key, job in known.items() if key not in seen and job.state not in ENDED}
        ended = accounting({name for name, _ in left}, since) if left else ()
    except SlurmSilent:
        return known
    by_key = {(job.name, job.id): job for job in ended}
    gone = {key: by_key.get(key, Job(id=job.id, name=job.name, state=GONE)) for key, job in left.items()}
    return known | gone | seen
