"""The home folder: where runs, sweeps and warm starts are (docs/formats.md)."""

import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError, did_you_mean
from scalerl.run.run_folder import RunFolder

DEFAULT = Path("ablation-runs")
SWEEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,127}")
"""That of its file, and after `@` and `+` what `--scale` and `--set` make of it."""


@dataclass(frozen=True)
class Home:
    """Paths inside one home folder."""

    path: Path

    @property
    def option(self) -> str:
        """What names this folder on a command line: `--home '/home/ada/my runs'`."""
        return f"--home {shlex.quote(str(self.path))}"

    @property
    def warm_starts(self) -> Path:
        """Supervised starts, shared by all runs of a scale and seed."""
        return self.path / "warm_starts"

    @property
    def sweeps(self) -> Path:
        """One folder a sweep."""
        return self.path / "sweeps"

    def sweep(self, name: str) -> Path:
        """The folder of one sweep."""
        return self.sweeps / name

    def run(self, run_id: str) -> RunFolder:
        """The folder of one run."""
        return RunFolder(self.path / "runs" / run_id)

    def run_ids(self) -> list[str]:
        """Runs that have begun here, of whichever sweep."""
        return [folder.name for folder in sorted((self.path / "runs").glob("*"))]

    def plan_file(self, sweep: str) -> Path:
        """The plan of a sweep; it is there once the sweep was started."""
        return self.sweep(sweep) / "plan.json"

    def lock_file(self, sweep: str) -> Path:
        """Held by the `platform sweep` that works on a sweep."""
        return self.sweep(sweep) / "lock"

    def sweep_names(self) -> list[str]:
        """Sweeps that were started here, last started first."""
        plans = sorted(self.sweeps.glob("*/plan.json"), key=lambda plan: plan.stat().st_mtime, reverse=True)
        return [plan.parent.name for plan in plans]

    def find_sweep(self, name: str | None) -> str:
        """The sweep of this name, or the one last started; AblationsError names those that exist."""
        names = self.sweep_names()
        if not names:
            raise AblationsError(f"no sweep has been started in {self.path}; `platform sweep FILE` starts one")
        if name is None:
            return names[0]
        if name not in names:
            raise AblationsError(f"unknown sweep '{name}' in {self.path}; {did_you_mean(name, names, 'sweeps')}")
        return name

    def require_writable(self) -> None:
        """Raise AblationsError unless files can be made here."""
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
    """`--home`, else ABLATIONS_HOME, else ./ablation-runs."""
    return Home((option or Path(os.environ.get("ABLATIONS_HOME") or DEFAULT)).absolute())


def check_sweep_name(name: str) -> None:
    """AblationsError unless a sweep may be called so."""
    if not SWEEP_NAME.fullmatch(name):
        raise AblationsError(
            f"{name!r} is no name of a sweep; it has up to 128 letters, digits and . _ + - @, and starts with a letter "
            "or digit"
        )
