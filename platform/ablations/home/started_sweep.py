"""A sweep in its home folder: its plan and everything else it keeps on disk.

>>> sweep = read_sweep(Home(Path("ablation-runs")), "loo")
>>> sweep.folder
PosixPath('ablation-runs/sweeps/loo')
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.cancellation import Cancellation
from ablations.home.heartbeat import is_locked
from ablations.home.home import Home
from ablations.home.plan import Plan
from scalerl.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class StartedSweep:
    """A sweep that has started in a home folder, or is about to: `StartedSweep(home=home, plan=plan)`."""

    home: Home
    plan: Plan
    beside: tuple[str, ...] = ()
    """Other sweeps whose variants are part of the plan, as `name (sweep)` (`ablations.findings.several_sweeps`)."""

    @property
    def name(self) -> str:
        """The name of the sweep's folder: `loo`, `loo@smoke`."""
        return self.plan.sweep

    @property
    def title(self) -> str:
        """The sweep's name with the names of the sweeps beside it: `loo with more, third`."""
        return f"{self.name} with {', '.join(self.beside)}" if self.beside else self.name

    @property
    def folder(self) -> Path:
        """The folder of the sweep's own files; its runs have their own folders, which sweeps share."""
        return self.home.sweep(self.name)

    @property
    def report_folder(self) -> Path:
        """The folder for reports: the sweep's own, or `with/more/third` inside it if there are sweeps beside it."""
        return self.folder.joinpath("with", *self.beside) if self.beside else self.folder

    @property
    def lock(self) -> Path:
        """The file that a command locks while it works on the sweep."""
        return self.home.lock_file(self.name)

    @property
    def is_at_work(self) -> bool:
        """True if a `platform sweep` on this machine works on the sweep."""
        return is_locked(self.lock)

    @property
    def cancellation(self) -> Cancellation:
        """What is cancelled of the sweep."""
        return Cancellation(self.folder / "cancelled")

    def run(self, run_id: str) -> RunFolder:
        return self.home.run(run_id)

    def write_plan(self) -> None:
        """Write the plan into the home folder."""
        self.plan.write(self.home.plan_file(self.name))

    def reread(self) -> "StartedSweep":
        """The sweep with its plan read again, since a search adds trials to it."""
        return read_sweep(self.home, self.name)


def read_sweep(home: Home, name: str) -> StartedSweep:
    """A sweep started in this home folder; raises AblationsError if there is none of this name."""
    return StartedSweep(home=home, plan=Plan.read(home.plan_file(name)))


def plans_of(home: Home, scale: str) -> Iterator[Plan]:
    """The plans of this scale, most recently started first; plans of other versions that cannot be read are skipped."""
    for name in home.sweep_names():
        with suppress(AblationsError):
            plan = read_sweep(home, name).plan
            if plan.scale == scale:
                yield plan
