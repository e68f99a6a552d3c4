"""The `resources:` block of a sweep file and of a scale file: what a job requests from Slurm, or a run from Ray.

    resources: {partition: gpu, time_min: 4:00:00, gpus: 8, cpus: 64, mem_gb: 200, setup: [module load cuda],
                sbatch: {nice: 100}}

The scale gives the needs of a run, the sweep the place: the sweep's keys and sbatch options replace the scale's one by
one. Resources are not part of a recipe or of a run's identity. `ablations.slurm.limits` checks them against the
cluster.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from ablations.errors import Place
from ablations.files.source import Source, shown_value
from scalerl.frozen import Count, Frozen, Positive

SLURM_KEYS = {
    "account": "account",
    "constraint": "constraint",
    "cpus-per-gpu": "cpus",
    "cpus-per-task": "cpus",
    "gpus": "gpus",
    "gpus-per-node": "gpus",
    "gpus-per-socket": "gpus",
    "gpus-per-task": "gpus",
    "mem": "mem_gb",
    "mem-per-cpu": "mem_gb",
    "mem-per-gpu": "mem_gb",
    "nodes": "nodes",
    "partition": "partition",
    "qos": "qos",
    "time": "time_min",
}
"""sbatch options that have their own key in the block."""
OWN_OPTIONS = frozenset(
    {
        "array", "chdir", "dependency", "error", "hold", "job-name", "no-requeue", "ntasks", "ntasks-per-core",
        "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "output", "requeue", "signal", "wrap",
    }
)  # fmt: skip
"""sbatch options that the platform sets itself."""
UNFIT_OPTIONS = frozenset(
    {
        "cluster-constraint", "clusters", "help", "parsable", "quiet", "test-only", "uid", "usage", "version", "wait",
    }
)  # fmt: skip
"""sbatch options that would hide jobs from the platform, or submit none."""
LONG_OPTION = re.compile(r"[a-z][a-z0-9-]+", re.ASCII)
SLURM_TIME = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}", re.ASCII)
KIND_AND_NUMBER = re.compile(r"[A-Za-z][\w.-]*:[1-9]\d*", re.ASCII)


def _minutes(written: Any) -> Any:
    """A time in Slurm's format as minutes; anything else unchanged."""
    if not isinstance(written, str):
        return written
    if not SLURM_TIME.fullmatch(written):
        raise ValueError(
            f"found {shown_value(written)}; must be a number of minutes or a time in Slurm's format, such as 4:00:00 "
            f"or 1-12:00:00"
        )
    return minutes(written)


def _gpus(written: Any) -> Any:
    is_number = isinstance(written, int) and not isinstance(written, bool) and written >= 0
    if is_number or (isinstance(written, str) and KIND_AND_NUMBER.fullmatch(written)):
        return written
    raise ValueError(f"found {shown_value(written)}; must be a number of GPUs, or a kind and a number, such as h100:8")


def _option_value(written: Any) -> Any:
    if written is None or isinstance(written, dict | list):
        raise ValueError(
            f"found {shown_value(written)}; must be a number or a word, or true for an option without a value"
        )
    if "\n" in str(written):
        raise ValueError(f"found {shown_value(written)}; must be on one line")
    return written


def option_name(written: str) -> str:
    """The name of an sbatch option, which may be written with underscores; ValueError if a file may not set it."""
    name = written.replace("_", "-")
    if not LONG_OPTION.fullmatch(name):
        raise ValueError(f"{written!r} is not a long option of sbatch; write only its name, as in nice: 100")
    if name in SLURM_KEYS:
        raise ValueError(f"{name} has its own key; write resources.{SLURM_KEYS[name]} instead")
    if name in OWN_OPTIONS:
        raise ValueError(f"the platform sets {name} itself; remove it")
    if name in UNFIT_OPTIONS:
        raise ValueError(f"{name} would hide the jobs from the platform; remove it")
    return name


NonEmptyText = Annotated[str, Field(min_length=1)]
Option = Annotated[str, AfterValidator(option_name)]
OptionValue = Annotated[str | int | float | bool, BeforeValidator(_option_value)]


class Resources(Frozen):
    """Resources of each run under `--executor slurm`; under `--executor ray` nodes, gpus, cpus, mem_gb and at_once."""

    partition: NonEmptyText | None = None
    """Partition of the jobs. Default: the cluster's. If several are given, separated by commas, Slurm uses the one that
    starts the job first."""
    account: NonEmptyText | None = None
    """The account to charge."""
    qos: NonEmptyText | None = None
    """Quality of service."""
    constraint: NonEmptyText | None = None
    """Features that a node must have."""
    time_min: Annotated[Positive, BeforeValidator(_minutes)] = 60.0
    """Time limit of one job in minutes, or in Slurm's format: 4:00:00, 1-12:00:00. A run that needs longer saves a
    checkpoint, is requeued and resumes."""
    nodes: Count = 1
    """Nodes of one run."""
    gpus: Annotated[int | str, BeforeValidator(_gpus)] = 0
    """GPUs on each node, with their kind if the cluster needs it: 8, h100:8."""
    cpus: Count | None = None
    """Processors on each node. Default: the scale's threads."""
    mem_gb: Positive = 4.0
    """Memory on each node."""
    setup: tuple[str, ...] = ()
    """Shell lines before the run, such as `module load cuda`."""
    sbatch: dict[Option, OptionValue] = Field(default_factory=dict)
    """Any other sbatch option by its long name: `true` for an option without a value; `false` in a sweep removes an
    option of its scale."""
    at_once: Count | None = None
    """Maximum number of runs that train at the same time. Default: as many as Slurm starts."""
    confirm_above_device_hours: Positive = 100.0
    """Ask before submitting a plan that may take more GPU-hours (without GPUs: processor-hours) than this; `--yes`
    skips the question."""

    @field_validator("sbatch", mode="before")
    @classmethod
    def _written_once(cls, options: Any) -> Any:
        names = [name.replace("_", "-") for name in options] if isinstance(options, dict) else []
        if twice := [name for position, name in enumerate(names) if name in names[:position]]:
            raise ValueError(f"{twice[0]} is written twice, with - and with _; remove one of them")
        return options

    @field_validator("sbatch")
    @classmethod
    def _no_other_gpus(cls, options: dict[str, OptionValue]) -> dict[str, OptionValue]:
        if "gpu" in str(options.get("gres", "")).split(":")[0]:
            raise ValueError("gres: GPUs have their own key; write resources.gpus, such as 8 or h100:8")
        return options

    @property
    def num_gpus(self) -> int:
        """GPUs on each node, of any type."""
        return int(str(self.gpus).rpartition(":")[2])

    @property
    def mem_mb(self) -> int:
        """Memory on each node in Slurm's MB, 1024 per GB."""
        return round(self.mem_gb * 1024)

    @property
    def limit_min(self) -> int:
        """The time limit in whole minutes, Slurm's unit."""
        return math.ceil(self.time_min)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Resources, with the place of each.

    >>> str(asked.place("sbatch.nice"))
    'sweeps/loo.yaml:9: resources.sbatch.nice'
    """

    resources: Resources
    places: Mapping[str, Place]
    """Places by key inside the block; `""` is the block itself."""
    root: Place
    """The file."""

    def place(self, key: str) -> Place:
        """The place of a key; for a default, the place where it could be written."""
        block = self.places.get("", self.root.inside("resources"))
        return self.places.get(key, block.inside(key))

    def over(self, other: "Asked") -> "Asked":
        """Every key of this block, and the other block's keys that this one does not write."""
        written = {
            name: getattr(block, name)
            for block in (other.resources, self.resources)
            for name in block.model_fields_set - {"sbatch"}
        }
        options = other.resources.sbatch | self.resources.sbatch
        resources = Resources(**written, sbatch={name: value for name, value in options.items() if value is not False})
        return Asked(resources=resources, places={**other.places, **self.places}, root=self.root)


def asked_in(source: Source, resources: Resources) -> Asked:
    """The `resources:` block of a parsed file; `resources` holds its values."""
    places = {}
    for path, place in source.places.items():
        if path[:1] == ("resources",):
            key = ".".join(map(str, path[1:]))
            places[key.replace("_", "-") if key.startswith("sbatch.") else key] = place
    return Asked(resources=resources, places=places, root=source.root)


def minutes(limit: str) -> float:
    """Slurm's time limit in minutes: `2:00:00` is 120, `1-00:00:00` is 1440, `30:00` is 30, `infinite` is inf."""
    if not limit or not limit[0].isdigit():
        return math.inf
    days, _, rest = limit.rpartition("-")
    parts = [float(part) for part in rest.split(":")]
    if not days and len(parts) < 3:  # begins with the minutes
        parts = [0.0, *parts]
    hours, minute, seconds = (*parts, 0.0, 0.0)[:3]
    return 24 * 60 * float(days or 0) + 60 * hours + minute + seconds / 60
