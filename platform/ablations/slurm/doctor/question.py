"""The scope of an examination: partitions, options and the study to check."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ablations.home.home import Home


@dataclass(frozen=True, kw_only=True)
class DoctorQuestion:
    """What to examine, and how."""

    home: Home
    tracking_uri: str
    say: Callable[[str], None]
    """Gets a line about each slow step."""
    partitions: tuple[str, ...] = ()
    """The partitions to probe; empty for the default one."""
    with_job: bool = True
    setup: tuple[str, ...] = ()
    """Shell lines before the probe, like `resources.setup`."""
    sbatch: tuple[str, ...] = ()
    """Options such as `account=physics`, like `resources.sbatch`."""
    wait_s: float = 120.0
    """Seconds that a probe may wait for a node."""
    trains: bool = False
    """True to train for a minute on each probed node, or here if there is none."""
    study: Path | None = None
    """The sweep file of a study to check."""
    scale: str | None = None
    """The scale of that study, if not its own."""

    @property
    def asks_for_cluster(self) -> bool:
        """True if the question names something that only a cluster has."""
        return bool(self.partitions or self.setup or self.sbatch)
