"""The maximum cost of a submission, shown before anything is submitted. Pure arithmetic: nothing here calls Slurm.

>>> print(SubmissionPlan(num_jobs=27, resources=resources, threads=1, partition="gpu", max_array_size=1001).text())
27 jobs in 1 array on partition gpu, 8 at a time; each: 1 node, 8 GPUs, 64 processors, 200 GB, at most 4 h
at most 864 GPU-hours; if 8 jobs can always run, the last job ends at most 16 h after the first one starts
a run that needs more than 4 h saves a checkpoint and is requeued, which costs up to 32 GPU-hours more
"""

import math
from dataclasses import dataclass

from ablations.study.resources import Resources
from ablations.text import MINUTE_S, counted, duration_text


@dataclass(frozen=True, kw_only=True)
class SubmissionPlan:
    """One job per run, with equal budgets. Every job counts up to its time limit, because the duration of a run is
    unknown.
    """

    num_jobs: int
    resources: Resources
    """The request of one job."""
    threads: int
    """Number of processors of a run if its resources name none."""
    partition: str
    max_array_size: int
    """Slurm's MaxArraySize."""

    @property
    def device(self) -> str:
        """The device charged for: GPUs, or processors if a job has no GPU."""
        return "GPU" if self.resources.num_gpus else "processor"

    @property
    def device_hours_of_a_job(self) -> float:
        """Cost of one job that runs until its limit, on all its nodes."""
        resources = self.resources
        return resources.nodes * (resources.num_gpus or self._cpus) * resources.limit_min / 60

    @property
    def device_hours(self) -> float:
        """Cost of all jobs if each runs until its limit."""
        return self.num_jobs * self.device_hours_of_a_job

    @property
    def needs_confirmation(self) -> bool:
        """True if the submission may take more device-hours than `resources.confirm_above_device_hours`."""
        return self.device_hours > self.resources.confirm_above_device_hours

    def text(self) -> str:
        """The plan, one sentence per line."""
        if self.num_jobs == 0:
            return "nothing to submit"
        of_nodes = ", plus the other devices of their nodes, which exclusive jobs block"
        more = of_nodes if "exclusive" in self.resources.sbatch else ""
        again = f"costs up to {self._amount(self.device_hours_of_a_job)} more"
        lines = (
            f"{self._jobs()}{self._request()}",
            f"at most {self._amount(self.device_hours)}{more}; {self._end()}",
            f"a run that needs more than {self._limits(1)} saves a checkpoint and is requeued, which {again}",
        )
        return "\n".join(lines)

    def question(self) -> str:
        """The question that a person must answer with yes before the submission."""
        most = self._amount(self.resources.confirm_above_device_hours)
        return (
            f"at most {self._amount(self.device_hours)}, above resources.confirm_above_device_hours ({most}); submit?"
        )

    @property
    def _cpus(self) -> int:
        return self.resources.cpus or self.threads

    def _jobs(self) -> str:
        if self.num_jobs == 1:
            return f"1 job on partition {self.partition}: "
        arrays = counted(math.ceil(self.num_jobs / most_tasks(self.max_array_size)), "array")
        at_once = self.resources.at_once
        turns = f", {at_once} at a time" if at_once is not None and at_once < self.num_jobs else ""
        return f"{self.num_jobs} jobs in {arrays} on partition {self.partition}{turns}; each: "

    def _request(self) -> str:
        """What one job asks for: `2 nodes with 8 GPUs (h100), 64 processors, 200 GB each, at most 4 h`."""
        resources = self.resources
        kind = str(resources.gpus).partition(":")[0]
        gpus = counted(resources.num_gpus, "GPU") + ("" if kind.isdecimal() else f" ({kind})")
        parts = [gpus] if resources.num_gpus else []
        on_a_node = ", ".join([*parts, counted(self._cpus, "processor"), f"{resources.mem_gb:g} GB"])
        nodes = f"1 node, {on_a_node}" if resources.nodes == 1 else f"{resources.nodes} nodes with {on_a_node} each"
        return f"{nodes}, at most {self._limits(1)}"

    def _end(self) -> str:
        """When the last job ends, if `at_once` jobs always run, each until its limit."""
        if self.num_jobs == 1:
            return f"the job ends at most {self._limits(1)} after it starts"
        at_once = self.resources.at_once
        if at_once is None:
            return "the end of the last job depends on the queue"
        wait = self._limits(math.ceil(self.num_jobs / at_once))
        room = f"if {counted(min(at_once, self.num_jobs), 'job')} can always run"
        return f"{room}, the last job ends at most {wait} after the first one starts"

    def _limits(self, number: int) -> str:
        return duration_text(MINUTE_S * self.resources.limit_min * number)

    def _amount(self, device_hours: float) -> str:
        text = hours_text(device_hours)
        return f"{text} {self.device}-hour" if text == "1" else f"{text} {self.device}-hours"


def most_tasks(max_array_size: int) -> int:
    """Maximum number of tasks in one array, one less than MaxArraySize; 0 turns arrays off."""
    return max(1, max_array_size - 1)


def hours_text(hours: float) -> str:
    """Hours as text: `0.5`, `12.5`, `864`, `12,800`."""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
