"""What Slurm said about the jobs of a home folder; all commands together ask at most once in ten seconds.

The answer stays on disk, because Slurm forgets an ended job after some minutes, and without accounting nobody else
remembers how it ended.

    <home>/slurm.json
    {"asked": 1763636574.2, "problem": "", "jobs": [{"id": "17_3", "name": "loo.1f0c9ad2", "state": "RUNNING", ...}]}
"""

import json
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock

from ablations.slurm.commands import GONE, Job, SlurmError, accounting, queue
from scalerl.run.run_folder import write_atomically

ASK_EVERY_S = 10.0
"""Seconds between two questions to the controller, whoever asks and however many runs there are."""

JobKey = tuple[str, str]
"""Name of the submission and Slurm's id of the job; a controller that forgot everything reuses ids."""


@dataclass(frozen=True, kw_only=True)
class QueueAnswer:
    """What Slurm last said."""

    asked: float = 0.0
    """Seconds since 1970."""
    problem: str = ""
    """Why it did not answer then; `jobs` has what it said before."""
    jobs: dict[JobKey, Job] = field(default_factory=dict)

    def job(self, key: JobKey) -> Job:
        """One of the jobs; a job that was submitted after the question waits."""
        return self.jobs.get(key) or Job(id=key[1], name=key[0], state="PENDING", reason="just submitted")


class QueueCache:
    """The jobs of all submissions of a home folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def answer(self, keys: Collection[JobKey], *, since: float, fresh: bool = False) -> QueueAnswer:
        """What Slurm says about these jobs, or said within the last ten seconds.

        `since` is when the first of them was submitted, in seconds since 1970. With `fresh` the answer is younger than
        the call, which may wait up to ten seconds for it. While the controller is silent the last answer holds: silence
        says nothing about the jobs.
        """
        called = time.time()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with FileLock(self.path.with_suffix(".lock")):
                known = self._read()
                now = time.time()
                if known.asked > now or now - known.asked >= ASK_EVERY_S:  # a clock that went back is no reason to wait
                    answer = asked_again(known, keys, since=since, now=now)
                    self._write(answer)
                    return answer
                if not fresh or known.asked >= called:
                    return known
            time.sleep(max(0.0, known.asked + ASK_EVERY_S - now))

    def _read(self) -> QueueAnswer:
        try:
            content = json.loads(self.path.read_bytes())
            jobs = [Job(**job) for job in content["jobs"]]
            return QueueAnswer(
                asked=content["asked"], problem=content["problem"], jobs={(job.name, job.id): job for job in jobs}
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return QueueAnswer()  # made again from what Slurm says

    def _write(self, answer: QueueAnswer) -> None:
        content = {
            "asked": answer.asked,
            "problem": answer.problem,
            "jobs": [asdict(job) for job in answer.jobs.values()],
        }
        with suppress(OSError):  # on a full disk the answer is good all the same
            write_atomically(self.path, json.dumps(content).encode())


def asked_again(known: QueueAnswer, keys: Collection[JobKey], *, since: float, now: float) -> QueueAnswer:
    """The answer of the queue and, for jobs that left the queue unseen, of accounting."""
    names = {name for name, _ in keys}
    try:
        seen = {(job.name, job.id): job for job in queue() if job.name in names}
        left = [key for key in keys if key not in seen and not (key in known.jobs and known.jobs[key].has_ended)]
        recorded = {(job.name, job.id): job for job in accounting({name for name, _ in left}, since)} if left else {}
    except SlurmError as error:
        return QueueAnswer(asked=now, problem=str(error), jobs=known.jobs)
    # Accounting shows a job that its controller forgot as running for ever.
    ended = {key: job for key, job in recorded.items() if job.has_ended}
    there = {name for name, _ in seen}
    gone = {key: ended.get(key) or vanished(key, known.jobs.get(key), is_array_there=key[0] in there) for key in left}
    kept = {key: job for key, job in known.jobs.items() if key in keys}
    return QueueAnswer(asked=now, jobs=kept | gone | seen)


def vanished(key: JobKey, before: Job | None, *, is_array_there: bool) -> Job:
    """A job that Slurm no longer knows.

    A task that waited and is gone while its array is still there was cancelled: Slurm forgets such a task at once.
    """
    was_cancelled = is_array_there and (before is None or before.state == "PENDING")
    return Job(id=key[1], name=key[0], state="CANCELLED" if was_cancelled else GONE)
