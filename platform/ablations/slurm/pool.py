"""Runs become Slurm jobs: arrays through submitit, chunked to what the cluster takes, never submitted twice.

What became of a job is read from the run's status file, the queue and accounting, never from a submitit result, for
which a killed job is never done.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import submitit

from ablations.dispatch import THREAD_VARIABLES
from ablations.home import Home
from ablations.slurm import commands
from ablations.slurm.job import SlurmJob
from ablations.slurm.resources import Resources
from ablations.slurm.snapshot import take_snapshot
from ablations.slurm.submissions import Submission, new_submission, read_submissions

SIGNAL_BEFORE_LIMIT_S = 120
"""Seconds before its time limit that a job is told; a checkpoint must fit in."""


@dataclass(kw_only=True)
class SlurmPool:
    """Submits runs of one sweep; each array's record is on disk before sbatch is asked."""

    home: Home
    sweep: str
    resources: Resources
    threads: int
    """Processors of a run where the resources name none."""
    hold: bool = False
    """Submit, but let nothing start before `scontrol release`."""
    after: str | None = None
    """Job that must have ended first."""

    def forget_interrupted(self) -> list[str]:
        """Undo submissions that were interrupted before Slurm's answer was on disk; returns their names.

        Nobody else may be submitting runs of this sweep. Such jobs would wait in vain for what they are to run.
        """
        interrupted = [one for one in read_submissions(self.home, self.sweep) if one.job is None]
        if interrupted:
            names = {one.name for one in interrupted}
            commands.cancel(job.id for job in commands.queue() if job.name in names)
        for one in interrupted:
            one.remove(self.home)
        return [one.name for one in interrupted]

    def submit(self, runs: Mapping[str, float]) -> list[Submission]:
        """Submit runs, each to its budget in GPU-hours: one array for each budget, in chunks of MaxArraySize."""
        if not runs:
            return []
        most = int(commands.setting("MaxArraySize")) - 1  # the largest index is one less than the setting
        snapshot = take_snapshot(self.home)
        submitted = []
        for budget in dict.fromkeys(runs.values()):
            ids = [run for run, its_budget in runs.items() if its_budget == budget]
            for start in range(0, len(ids), most):
                submitted.append(self._submit_array(tuple(ids[start : start + most]), budget, snapshot))
        return submitted

    def _submit_array(self, runs: tuple[str, ...], budget_gpu_hours: float, snapshot: Path) -> Submission:
        submission = new_submission(self.sweep, runs, budget_gpu_hours, snapshot, self.resources.model_dump())
        submission.write(self.home)
        executor = submitit.SlurmExecutor(self.home.sweep(self.sweep) / "submitit" / submission.name)
        executor.update_parameters(**self.parameters(submission))
        try:
            with outside_of_jobs(), executor.batch():
                jobs = [
                    executor.submit(SlurmJob(self.home.run(run).path, budget_gpu_hours, self.home.warm_starts))
                    for run in runs
                ]
        except Exception:
            submission.remove(self.home)
            raise
        submission = submission.given(jobs[0].job_id.partition("_")[0])
        submission.write(self.home)
        return submission

    def parameters(self, submission: Submission) -> dict[str, Any]:
        """What submitit writes at the top of the batch script."""
        asked, cpus = self.resources, self.resources.cpus or self.threads
        more: dict[str, Any] = {name.replace("_", "-"): value for name, value in asked.sbatch.items()}
        if self.hold:
            more["hold"] = True
        threads = f"export {' '.join(f'{name}={cpus}' for name in THREAD_VARIABLES)}"
        found = {
            "job_name": submission.name,
            "time": max(1, round(asked.time_min)),
            "nodes": asked.nodes,
            "ntasks_per_node": 1,
            "cpus_per_task": cpus,
            "gpus_per_node": asked.gpus or None,
            "mem": f"{round(asked.mem_gb * 1024)}MB",
            "partition": asked.partition,
            "account": asked.account,
            "qos": asked.qos,
            "constraint": asked.constraint,
            "dependency": f"afterany:{self.after}" if self.after else None,
            "array_parallelism": asked.at_once or len(submission.runs),
            "signal_delay_s": min(SIGNAL_BEFORE_LIMIT_S, round(asked.time_min * 60 / 2)),
            "setup": [threads, f"export PYTHONPATH={submission.snapshot}", *asked.setup],
            "additional_parameters": {"requeue": True, **more},
            "wckey": None,
        }
        return {name: value for name, value in found.items() if value is not None}


@contextmanager
def outside_of_jobs() -> Iterator[None]:
    """This process's environment without what Slurm tells a job about itself: sbatch would take it for its options."""
    before = dict(os.environ)
    kept = commands.outside_of_jobs(before)
    for name in before.keys() - kept.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)
