"""What a job asks Slurm for: the `resources:` block of a sweep or scale file."""

from typing import Annotated

from pydantic import Field, field_validator

from scalerl.frozen import Count, Frozen, Positive

OWN_OPTIONS = frozenset(
    {
        "array", "chdir", "dependency", "error", "hold", "job-name", "no-requeue", "open-mode", "output", "requeue",
        "signal", "wrap",
    }
)  # fmt: skip
"""Options of sbatch that the platform sets itself."""


class Resources(Frozen):
    """What each run gets from Slurm.

    resources: {partition: gpu, time_min: 240, gpus: 8, cpus: 64, setup: [module load cuda], sbatch: {nice: 100}}
    """

    partition: str | None = None
    """Else the cluster's default."""
    account: str | None = None
    """Who is charged."""
    qos: str | None = None
    """Quality of service."""
    constraint: str | None = None
    """Features a node must have."""
    time_min: Positive = 60.0
    """Minutes that one job may take. A run that needs longer writes its checkpoint, is requeued and goes on."""
    nodes: Count = 1
    """Nodes of one run."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs on each node."""
    cpus: Count | None = None
    """Processors on each node; else the scale's threads."""
    mem_gb: Positive = 4.0
    """Memory on each node."""
    setup: tuple[str, ...] = ()
    """Shell lines before the run, such as `module load cuda`."""
    sbatch: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Any other option of sbatch by its long name, `true` for one without a value."""

    @field_validator("sbatch")
    @classmethod
    def _not_ours(cls, options: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        fields = {"partition", "account", "qos", "constraint", "time", "nodes", "gpus-per-node", "cpus-per-task", "mem"}
        for name in (option.replace("_", "-") for option in options):
            if name in OWN_OPTIONS:
                raise ValueError(f"{name} is set by the platform itself; leave it out")
            if name in fields:
                raise ValueError(f"{name} has a key of its own in resources; leave it out of sbatch")
        return options

    at_once: Count | None = None
    """Most runs that train at the same time; else as many as Slurm starts."""
    confirm_above_gpu_hours: Positive = 100.0
    """A plan whose jobs might take more device-hours than this is asked about first; `--yes` answers."""
