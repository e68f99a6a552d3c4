"""The home folder, which holds runs, sweeps and warm starts (docs/formats.md)."""

import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.nearest_name import did_you_mean
from scalerl.run.run_folder import RunFolder

DEFAULT = Path("ablation-runs")
SWEEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,127}")
"""A sweep is named after its file; `--scale` and `--set` add parts after `@` and `+`."""


@dataclass(frozen=True)
class Home:
    """Paths inside one home folder."""

    path: Path
    is_passing: bool = False
    """True for a home made for one comparison of other trainers' runs, which no message names."""

    @property
    def option(self) -> str:
        """The option that selects this folder on a command line: `--home '/home/ada/my runs'`."""
        return f"--home {shlex.quote(str(self.path))}"

    @property
    def end_of_command(self) -> str:
        """What a printed command needs besides to find this folder: a space and the option; nothing for
        ./ablation-runs. A shell in which it is pasted may have another ABLATIONS_HOME, or none."""
        return self.end_of_command_in(Path.cwd())

    def end_of_command_in(self, folder: Path) -> str:
        """As `end_of_command`, for a command that is given in this folder."""
        chosen = os.environ.get("ABLATIONS_HOME")
        is_found = self.path == folder / DEFAULT and (not chosen or Path(chosen).absolute() == self.path)
        return "" if is_found else f" {self.option}"

    @property
    def warm_starts(self) -> Path:
        """The folder of supervised starts, shared by all runs of a scale and seed."""
        return self.path / "warm_starts"

    @property
    def sweeps(self) -> Path:
        """The folder of all sweeps."""
        return self.path / "sweeps"

    @property
    def curves(self) -> Path:
        """The folder of homes for other trainers' logs that were compared without an import, each with its runs and
        fits; it may be deleted at any time."""
        return self.path / "curves"

    @property
    def campaigns(self) -> Path:
        """The folder of campaigns, each with its ledger."""
        return self.path / "campaigns"

    def sweep(self, name: str) -> Path:
        return self.sweeps / name

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self.path.joinpath("runs", run_id))

    def run_ids(self) -> list[str]:
        """Ids of the runs that have started here, in any sweep."""
        return sorted(folder.name for folder in (self.path / "runs").glob("*") if folder.is_dir())

    def plan_file(self, sweep: str) -> Path:
        """The plan of a sweep; the file exists once the sweep has started."""
        return self.sweep(sweep) / "plan.json"

    def lock_file(self, sweep: str) -> Path:
        """The lock held by the `platform sweep` that works on a sweep."""
        return self.sweep(sweep) / "lock"

    def sweep_names(self) -> list[str]:
        """Names of the sweeps started here, the most recent first."""
        plans = sorted(self.sweeps.glob("*/plan.json"), key=lambda plan: plan.stat().st_mtime, reverse=True)
        return [plan.parent.name for plan in plans]

    def find_sweep(self, name: str | None) -> str:
        """The sweep of this name, or the most recent for None; AblationsError lists the sweeps if there is none."""
        names = self.sweep_names()
        if not names:
            raise AblationsError(f"no sweep has been started in {self.path}; to start one, run `platform sweep FILE`")
        if name is None:
            return names[0]
        if name not in names:
            raise AblationsError(f"unknown sweep '{name}' in {self.path}; {did_you_mean(name, names, 'sweeps')}")
        return name

    def require_writable(self) -> None:
        """Make the folder and write a few bytes into it; AblationsError if that fails, also on a full disk."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path) as file:
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise AblationsError(
                f"home folder {self.path}: {error.strerror or error}; choose a writable one with --home or "
                "ABLATIONS_HOME"
            ) from error


def find_home(option: Path | None) -> Home:
    """The home named by `--home`, else by ABLATIONS_HOME, else ./ablation-runs."""
    return Home((option or Path(os.environ.get("ABLATIONS_HOME") or DEFAULT)).absolute())


def check_sweep_name(name: str, what: str = "sweep") -> None:
    """Raise AblationsError unless the name is valid for a sweep, or for what else has such names."""
    if not SWEEP_NAME.fullmatch(name):
        raise AblationsError(
            f"{name!r} is not a valid {what} name; use up to 128 letters, digits and . _ + - @, starting with a letter "
            "or digit"
        )
