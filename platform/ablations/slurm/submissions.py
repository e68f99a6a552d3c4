"""Records of Slurm submissions: one file per job array, written before sbatch is called and completed after.

    sweeps/loo/submissions/loo.1f0c9ad2.json
    {"name": "loo.1f0c9ad2", "job": "17", "submitted": 1763636574.2, "budget_gpu_hours": 2000.0,
     "runs": ["81d2f0a95c3b", "3f0c9a1b2d4e"], "snapshot": "...", "resources": {...}}

The name is the job's name in Slurm and never reused, so (name, task) identifies a job even after a controller that lost
its state has given the id to another one. `job` is null until sbatch answers. If a command is killed before that, `job`
stays null, and the jobs are found by their name.
"""

import json
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.files.tail import tail
from ablations.home.home import Home
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One job array, or a single job; run i of `runs` is task i."""

    sweep: str
    name: str
    runs: tuple[str, ...]
    budget_gpu_hours: float
    submitted: float
    """Seconds since 1970."""
    snapshot: str
    """Folder of the code that the jobs run."""
    resources: dict[str, Any]
    job: str | None = None
    """Slurm's id of the array."""

    def task_ids(self) -> dict[str, str]:
        """Slurm's job id of each run: `17_0` in an array, `17` for a single job; empty until sbatch has answered."""
        if self.job is None:
            return {}
        if len(self.runs) == 1:
            return {self.runs[0]: self.job}
        return {run: f"{self.job}_{task}" for task, run in enumerate(self.runs)}

    def write(self, home: Home) -> None:
        path = folder(home, self.sweep) / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())

    def remove(self, home: Home) -> None:
        """Delete the record, after sbatch rejected the submission."""
        (folder(home, self.sweep) / f"{self.name}.json").unlink(missing_ok=True)


def new_submission(
    sweep: str, runs: tuple[str, ...], budget_gpu_hours: float, snapshot: Path, resources: dict[str, Any]
) -> Submission:
    """A submission for which sbatch has not been called yet."""
    return Submission(
        sweep=sweep,
        name=f"{sweep}.{uuid.uuid4().hex[:8]}",
        runs=runs,
        budget_gpu_hours=budget_gpu_hours,
        submitted=time.time(),
        snapshot=str(snapshot),
        resources=resources,
    )


def folder(home: Home, sweep: str) -> Path:
    """The folder with the submissions of a sweep."""
    return home.sweep(sweep) / "submissions"


def read_submissions(home: Home, sweep: str | None = None) -> list[Submission]:
    """The submissions of one sweep, oldest first, or of all, since a run may be part of several sweeps.

    AblationsError if a record is damaged.
    """
    found = []
    for path in folder(home, sweep).glob("*.json") if sweep else home.sweeps.glob("*/submissions/*.json"):
        try:
            content = parsed_json(path.read_bytes())
            found.append(Submission(**content | {"runs": tuple(content["runs"])}))
        except FileNotFoundError:
            continue  # just deleted by another command, because sbatch rejected it
        except (ValueError, TypeError, KeyError) as error:
            raise AblationsError(
                f"{path}: not a record of a submission ({error}). End its jobs with `scancel --me --name={path.stem}`, "
                "delete the file, and resubmit with `platform sweep FILE`"
            ) from error
    return sorted(found, key=lambda submission: submission.submitted)


OUT_OF_MEMORY = ("exceeded memory limit", "oom-kill", "oom_kill", "Out Of Memory")
"""Messages of Slurm's daemon when it ends a job for its memory, whatever state the job then has."""


def logs_of_job(home: Home, submission: Submission, run_id: str) -> list[Path]:
    """The output files of a run's job: `17_3_0_log.err` for task 3 of an array, `17_0_log.err` for a job."""
    job, folder = submission.task_ids().get(run_id), log_folder(home, submission)
    return [] if job is None else [*folder.glob(f"{job}_*_log.out"), *folder.glob(f"{job}_*_log.err")]


def log_folder(home: Home, submission: Submission) -> Path:
    """The folder for submitit's files of a submission and the output of its jobs."""
    return home.sweep(submission.sweep) / "submitit" / submission.name


def tells_of_memory(logs: list[Path]) -> bool:
    """True if a job was ended for using more memory than requested."""
    return any(word in line for path in logs for line in tail(path) for word in OUT_OF_MEMORY)
