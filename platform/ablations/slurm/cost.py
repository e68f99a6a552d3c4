"""The maximum cost of a submission, shown before anything is submitted. Pure arithmetic: nothing here calls Slurm.

>>> print(submission_plan(27, resources, threads=1, partition="gpu", max_array_size=1001).text())
27 jobs in 1 array on partition gpu, 8 at a time; each: 1 node, 8 GPUs, 64 processors, 200 GB, at most 4 h
at most 864 GPU-hours; if 8 jobs can always run, the last job ends at most 16 h after the first one starts
a run that needs more than 4 h saves a checkpoint and is requeued, which costs up to 32 GPU-hours more
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from ablations.study.resources import Resources
from ablations.text import HOUR_S, MINUTE_S, counted, duration_text


@dataclass(frozen=True, kw_only=True)
class SubmissionPlan:
    """One job per run. Every job counts up to its time limit, because the duration of a run is unknown."""

    num_jobs: int
    num_arrays: int
    at_once: int | None
    """Maximum number of concurrent jobs; None if only Slurm decides."""
    partition: str
    device: Literal["GPU", "processor"]
    """The device charged for: GPUs, or processors if a job has no GPU."""
    num_devices: int
    """Devices per job, on all its nodes."""
    limit_h: float
    """Time limit of a job."""
    asks: str
    """The request of one job, as text."""
    is_exclusive: bool
    """True if jobs block whole nodes, whose other devices are not counted."""
    confirm_above_device_hours: float

    @property
    def device_hours_of_a_job(self) -> float:
        """Cost of one job that runs until its limit."""
        return self.num_devices * self.limit_h

    @property
    def device_hours(self) -> float:
        """Cost of all jobs if each runs until its limit."""
        return self.num_jobs * self.device_hours_of_a_job

    @property
    def longest_wait_h(self) -> float | None:
        """Hours from the first job's start to the last one's end, if `at_once` jobs always run, each until its limit.

        None if that depends only on the queue.
        """
        if self.num_jobs <= 1:
            return self.num_jobs * self.limit_h
        return None if self.at_once is None else math.ceil(self.num_jobs / self.at_once) * self.limit_h

    @property
    def needs_confirmation(self) -> bool:
        """True if the user must confirm before submission."""
        return self.device_hours > self.confirm_above_device_hours

    def lines(self) -> list[str]:
        """The plan as text, one sentence per line."""
        if self.num_jobs == 0:
            return ["nothing to submit"]
        arrays = f" in {counted(self.num_arrays, 'array')}" if self.num_jobs > 1 else ""
        at_once = f", {self.at_once} at a time" if self.at_once is not None and self.at_once < self.num_jobs else ""
        each = "; each: " if self.num_jobs > 1 else ": "
        more = ", plus the other devices of their nodes, which exclusive jobs block" if self.is_exclusive else ""
        limit, again = duration_text(HOUR_S * self.limit_h), self._amount(self.device_hours_of_a_job)
        return [
            f"{counted(self.num_jobs, 'job')}{arrays} on partition {self.partition}{at_once}{each}{self.asks}",
            f"at most {self._amount(self.device_hours)}{more}; {self._end()}",
            f"a run that needs more than {limit} saves a checkpoint and is requeued, which costs up to {again} more",
        ]

    def text(self) -> str:
        """The plan as one text."""
        return "\n".join(self.lines())

    def question(self) -> str:
        """The question to ask if `needs_confirmation`."""
        most = self._amount(self.confirm_above_device_hours)
        return (
            f"at most {self._amount(self.device_hours)}, above resources.confirm_above_device_hours ({most}); submit?"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for scripts."""
        return {
            "num_jobs": self.num_jobs,
            "num_arrays": self.num_arrays,
            "at_once": self.at_once,
            "partition": self.partition,
            "device": self.device,
            "num_devices": self.num_devices,
            "limit_h": self.limit_h,
            "is_exclusive": self.is_exclusive,
            "device_hours": self.device_hours,
            "longest_wait_h": self.longest_wait_h,
            "needs_confirmation": self.needs_confirmation,
        }

    def _amount(self, device_hours: float) -> str:
        text = hours_text(device_hours)
        return f"{text} {self.device}-hour" if text == "1" else f"{text} {self.device}-hours"

    def _end(self) -> str:
        if self.longest_wait_h is None:
            return "the end of the last job depends on the queue"
        if self.num_jobs == 1:
            return f"the job ends at most {duration_text(HOUR_S * self.longest_wait_h)} after it starts"
        room = f"if {counted(min(self.at_once or 1, self.num_jobs), 'job')} can always run"
        wait = duration_text(HOUR_S * self.longest_wait_h)
        return f"{room}, the last job ends at most {wait} after the first one starts"


def submission_plan(
    num_runs: int, resources: Resources, *, threads: int, partition: str, max_array_size: int
) -> SubmissionPlan:
    """The plan for a number of runs with equal budgets.

    `threads` are the processors of a run if its resources name none; `max_array_size` is Slurm's MaxArraySize.
    """
    cpus = resources.cpus or threads
    on_a_node = resources.num_gpus or cpus
    return SubmissionPlan(
        num_jobs=num_runs,
        num_arrays=math.ceil(num_runs / most_tasks(max_array_size)),
        at_once=resources.at_once,
        partition=partition,
        device="GPU" if resources.num_gpus else "processor",
        num_devices=resources.nodes * on_a_node,
        limit_h=resources.limit_min / 60,
        asks=asks(resources, cpus),
        is_exclusive="exclusive" in resources.sbatch,
        confirm_above_device_hours=resources.confirm_above_device_hours,
    )


def most_tasks(max_array_size: int) -> int:
    """Maximum number of tasks in one array, one less than MaxArraySize; 0 turns arrays off."""
    return max(1, max_array_size - 1)


def asks(resources: Resources, cpus: int) -> str:
    """The request of one job: `2 nodes with 8 GPUs (h100), 64 processors, 200 GB each, at most 4 h`."""
    kind = str(resources.gpus).partition(":")[0]
    gpus = counted(resources.num_gpus, "GPU") + ("" if kind.isdecimal() else f" ({kind})")
    parts = [gpus] if resources.num_gpus else []
    on_a_node = ", ".join([*parts, counted(cpus, "processor"), f"{resources.mem_gb:g} GB"])
    limit = duration_text(MINUTE_S * resources.limit_min)
    if resources.nodes == 1:
        return f"1 node, {on_a_node}, at most {limit}"
    return f"{resources.nodes} nodes with {on_a_node} each, at most {limit}"


def hours_text(hours: float) -> str:
    """Hours as text: `0.5`, `12.5`, `864`, `12,800`."""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
