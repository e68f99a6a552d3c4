"""A sweep in its home folder: the plan, and all that belongs to it on disk.

>>> sweep = read_sweep(Home(Path("ablation-runs")), "loo")
>>> sweep.folder
PosixPath('ablation-runs/sweeps/loo')
>>> [stop.text(sweep.plan) for stop in sweep.read_stops().values()]
['stopped, A in [0.580, 0.620]: gain to 16000 GPU-hours below 0.01 with probability 0.93, after 23 readings (4899 ...)']
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.state import is_locked
from ablations.home.stops import Stopped, read_stops, write_stops
from scalerl.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class StartedSweep:
    """A sweep that was started in a home folder, or is about to be: `StartedSweep(home=home, plan=plan)`."""

    home: Home
    plan: Plan
    beside: tuple[str, ...] = ()
    """Other sweeps whose variants stand in the plan, as `name (sweep)`: `ablations.findings.together`."""

    @property
    def name(self) -> str:
        """The name of its folder: `loo`, `loo@smoke`."""
        return self.plan.sweep

    @property
    def title(self) -> str:
        """Its name and those of the sweeps beside it: `loo with more, third`."""
        return f"{self.name} with {', '.join(self.beside)}" if self.beside else self.name

    @property
    def folder(self) -> Path:
        """Where the sweep's own files are; those of its runs are in the runs' folders, which sweeps share."""
        return self.home.sweep(self.name)

    @property
    def report_folder(self) -> Path:
        """Where its reports are written; with sweeps beside it in `with`, a folder inside a folder for each of them."""
        return self.folder.joinpath("with", *self.beside) if self.beside else self.folder

    @property
    def lock(self) -> Path:
        """Held by the `platform sweep` that works on it."""
        return self.home.lock_file(self.name)

    @property
    def is_at_work(self) -> bool:
        """Whether a `platform sweep` works on it on this machine."""
        return is_locked(self.lock)

    @property
    def cancellation(self) -> Cancellation:
        """Which of its runs are cancelled."""
        return Cancellation(self.folder / "cancelled")

    def run(self, run_id: str) -> RunFolder:
        """The folder of one of its runs."""
        return self.home.run(run_id)

    def write_plan(self) -> None:
        """Replace `plan.json` in one step."""
        self.plan.write(self.home.plan_file(self.name))

    def reread(self) -> "StartedSweep":
        """The sweep with the plan that is on disk: a search adds trials to it."""
        return read_sweep(self.home, self.name)

    def read_stops(self) -> dict[str, Stopped]:
        """The runs that were stopped or flagged under the plan's budget and rules, by id."""
        return read_stops(self.folder, self.plan)

    def write_stops(self, stops: Iterable[Stopped]) -> None:
        """Replace the stops."""
        write_stops(self.folder, stops)


def read_sweep(home: Home, name: str) -> StartedSweep:
    """A sweep that was started in this home folder; AblationsError where none of this name was."""
    return StartedSweep(home=home, plan=Plan.read(home.plan_file(name)))


def plans_of(home: Home, scale: str) -> Iterator[Plan]:
    """The plans of this scale, the sweep last started first; those of other versions that cannot be read left out."""
    for name in home.sweep_names():
        with suppress(AblationsError):
            plan = read_sweep(home, name).plan
            if plan.scale == scale:
                yield plan
