"""Slurm's answers about the jobs of a home folder; all commands together query at most once in ten seconds.

Answers stay on disk, because Slurm forgets an ended job after a few minutes, and without accounting nobody else knows
how it ended.

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

from ablations.home.home import Home
from ablations.slurm.commands import GONE, Job, SlurmError, accounting, queue
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

ASK_EVERY_S = 10.0
"""Seconds between two queries to the controller, however many runs and commands there are."""

JobKey = tuple[str, str]
"""Name of the submission and Slurm's job id; a controller that lost its state reuses ids."""


@dataclass(frozen=True, kw_only=True)
class QueueAnswer:
    """Slurm's last answer."""

    asked: float = 0.0
    """Seconds since 1970."""
    problem: str = ""
    """The error if Slurm did not answer then; `jobs` is from the previous answer."""
    jobs: dict[JobKey, Job] = field(default_factory=dict)

    def job(self, key: JobKey) -> Job:
        """One of the jobs; a job submitted after the query counts as waiting."""
        return self.jobs.get(key) or Job(id=key[1], name=key[0], state="PENDING", reason="just submitted")


def queue_answer(home: Home, keys: Collection[JobKey], *, since: float, fresh: bool = False) -> QueueAnswer:
    """Slurm's answer about these jobs of a home folder, at most ten seconds old.

    `since` is the time of the first submission, in seconds since 1970. With `fresh` the answer is newer than the call,
    which may wait up to ten seconds for it. While the controller is silent the last answer holds, since silence says
    nothing about the jobs.
    """
    called, path = time.time(), home.path / "slurm.json"
    while True:
        with FileLock(path.with_suffix(".lock")):
            known, now = _read(path), time.time()
            if known.asked > now or now - known.asked >= ASK_EVERY_S:  # do not wait after the clock went back
                answer = asked_again(known, keys, since=since, now=now)
                _write(path, answer)
                return answer
            if not fresh or known.asked >= called:
                return known
        time.sleep(max(0.0, known.asked + ASK_EVERY_S - now))


def _read(path: Path) -> QueueAnswer:
    try:
        content = parsed_json(path.read_bytes())
        jobs = {(job["name"], job["id"]): Job(**job) for job in content["jobs"]}
        return QueueAnswer(asked=content["asked"], problem=content["problem"], jobs=jobs)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return QueueAnswer()  # rebuilt from Slurm's next answer


def _write(path: Path, answer: QueueAnswer) -> None:
    jobs = [asdict(job) for job in answer.jobs.values()]
    content = {"asked": answer.asked, "problem": answer.problem, "jobs": jobs}
    with suppress(OSError):  # the answer is valid even if the disk is full
        write_atomically(path, json.dumps(content).encode())


def asked_again(known: QueueAnswer, keys: Collection[JobKey], *, since: float, now: float) -> QueueAnswer:
    """The answer of the queue and, for jobs that left the queue unobserved, of accounting."""
    names = {name for name, _ in keys}
    try:
        seen = {(job.name, job.id): job for job in queue() if job.name in names}
        left = [key for key in keys if key not in seen and not (key in known.jobs and known.jobs[key].has_ended)]
        recorded = {(job.name, job.id): job for job in accounting({name for name, _ in left}, since)} if left else {}
    except SlurmError as error:
        return QueueAnswer(asked=now, problem=str(error), jobs=known.jobs)
    # Accounting shows a job that its controller lost as running for ever.
    ended = {key: job for key, job in recorded.items() if job.has_ended}
    there = {name for name, _ in seen}
    gone = {key: ended.get(key) or vanished(key, known.jobs.get(key), is_array_there=key[0] in there) for key in left}
    kept = {key: job for key, job in known.jobs.items() if key in keys}
    return QueueAnswer(asked=now, jobs=kept | gone | seen)


def vanished(key: JobKey, before: Job | None, *, is_array_there: bool) -> Job:
    """A job that Slurm no longer knows.

    If a waiting task is gone while its array remains, the task was cancelled: Slurm forgets such a task at once.
    """
    was_cancelled = is_array_there and (before is None or before.state == "PENDING")
    return Job(id=key[1], name=key[0], state="CANCELLED" if was_cancelled else GONE)
