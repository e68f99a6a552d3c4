"""What a command line names, as sources to import: logs, a table of curves, folders of scripts, or an experiment."""

import atexit
import hashlib
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.fit.curve_file import Declared, read_declared, read_scales
from ablations.fit.table_file import is_curve_file
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.imports.found_run import ForeignSource
from ablations.imports.from_curves import CurveFile
from ablations.imports.from_logs import logged_runs
from ablations.imports.from_mlflow import Experiment
from ablations.imports.from_scripts import folders_of_runs, script_runs
from ablations.imports.import_runs import ImportOrder, import_runs
from ablations.logs.meaning import LogMeaning
from ablations.logs.naming import Naming
from ablations.terminal.progress_bar import Done

MOST_PASSING = 32
"""Maximum number of homes kept for comparisons without an import; the most recently used stay."""
OF_LOGS = ("logs", "an MLflow experiment")
"""Kinds of runs whose unit of compute follows from the options."""


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Runs of other trainers as a command line names them: `Foreign(names=("runs/a.jsonl",), meaning=...)`."""

    names: tuple[str, ...]
    """Files and folders, or the experiment of MLflow."""
    meaning: LogMeaning = field(default_factory=LogMeaning)
    naming: Mapping[str, str] = field(default_factory=dict)
    """The fields of `Naming` that were given."""
    mlflow: str | None = None
    """MLflow server or store."""

    @property
    def kind(self) -> str:
        """What the names are, for messages; empty if they are neither logs nor curves."""
        if self.mlflow is not None:
            return "an MLflow experiment"
        if any((self.meaning.trainer, self.meaning.score, self.meaning.compute)):
            return "logs"
        if any(map(is_curve_file, self.names)):
            return "a CSV file"
        if self.names and all(Path(name).is_dir() and folders_of_runs(Path(name)) for name in self.names):
            return "folders of runs"
        return ""

    @property
    def own_name(self) -> str:
        """A name for the sweep: that of the experiment, of the file, or of the folder that holds everything."""
        paths = [Path(name) for name in self.names]
        name = "runs"
        if self.mlflow is not None:
            name = self.names[0]
        elif len(paths) == 1:
            name = Path(paths[0].absolute().name.removesuffix(".gz")).stem
        elif len(parents := {path.absolute().parent for path in paths}) == 1:
            name = next(iter(parents)).name
        return re.sub(r"[^A-Za-z0-9._+@-]+", "-", name).lstrip("._+@-")[:100] or "runs"

    def sources(self) -> dict[str, Sequence[ForeignSource]]:
        """The sources by scale, "" without scales; AblationsError if there are none."""
        paths = [Path(name) for name in self.names]
        if self.mlflow is not None:
            if len(self.names) != 1:
                raise AblationsError(f"--mlflow: found {len(self.names)} names; name one experiment of MLflow")
            experiment = Experiment(uri=self.mlflow, name=self.names[0], meaning=self.meaning)
            return {"": [replace(experiment, **self.naming)]}
        if self.kind == "logs":
            return {"": logged_runs(paths, self.meaning, Naming(**self.naming))}
        if self.kind == "a CSV file":
            if len(paths) > 1:
                one = next(name for name in self.names if is_curve_file(name))
                raise AblationsError(
                    f"a CSV file cannot be combined with other sources; pass only {one}, or only sweeps. Logs need "
                    "--log, or --score and --compute"
                )
            scales = read_scales(paths[0])
            if len(scales) > 1:
                return {scale: [CurveFile(path=paths[0], scale=scale)] for scale in scales}
            return {"": [CurveFile(path=paths[0])]}
        if self.kind == "folders of runs":
            return {"": script_runs(paths)}
        raise AblationsError(
            f"{' '.join(self.names) or 'no source'}: for logs, name the trainer with --log TRAINER --gpus N, or the "
            "columns with --score and --compute; a CSV file of curves has the columns curve, compute and score, or "
            "step and a column for each run"
        )

    def orders(
        self,
        name: str | None = None,
        *,
        command: str = "",
        reference: str | None = None,
        fits: Mapping[str, Any] | None = None,
    ) -> list[ImportOrder]:
        """One order, or one for each scale of a table: `curves@1e8`, `curves@1e9`. `fits` are the fields of
        `FitSettings` that were given; a table may declare the others."""
        own = name or self.own_name
        orders = []
        for scale, sources in self.sources().items():
            declared = self._declared(scale)
            orders.append(
                ImportOrder(
                    name=f"{own}@{scale}" if scale else own,
                    sources=sources,
                    compute_name=declared.compute_unit,
                    command=command,
                    reference=reference,
                    settings=replace(declared.settings, **fits) if fits else None,
                    declared=declared,
                )
            )
        return orders

    def _declared(self, scale: str) -> Declared:
        """The unit of compute, and the settings of fits if the source names them."""
        if self.kind == "a CSV file":
            return read_declared(self.names[0], scale=scale or None)
        return Declared(compute_unit=self.meaning.compute_name) if self.kind in OF_LOGS else Declared()

    def opened(self, home: Home, *, reference: str | None = None, done: Done | None = None) -> list[StartedSweep]:
        """The sweeps of these runs in a scratch home: one inside `home` for logs, which take long to read, and one that
        ends with this process for everything else."""
        passing = _kept_home(home, self) if self.kind == "logs" else None
        passing = passing or _short_home()
        orders = self.orders(reference=reference)
        orders = [
            replace(order, settings=order.declared.settings) for order in orders
        ]  # whatever the scratch home had before
        return [import_runs(passing, order, done=done).sweep for order in orders]

    def opened_one(self, home: Home, *, reference: str | None = None, done: Done | None = None) -> StartedSweep:
        """Open these runs as `opened` does, as one sweep; AblationsError if a table has several scales."""
        opened = self.opened(home, reference=reference, done=done)
        if len(opened) > 1:
            named = ", ".join(one.name.rpartition("@")[2] for one in opened)
            raise AblationsError(
                f"{self.names[0]}: runs of {len(opened)} scales ({named}); run "
                f"`platform ladder {shlex.quote(self.names[0])}`, or keep the rows of one scale"
            )
        return opened[0]


def _kept_home(home: Home, foreign: Foreign) -> Home | None:
    """A home for these very runs inside `home`, the same for the same command; None if it cannot be written."""
    paths = [str(Path(name).absolute()) for name in foreign.names]
    content: list[Any] = [paths, asdict(foreign.meaning), dict(foreign.naming)]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    with suppress(OSError):
        folder = home.curves / key
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        by_use = sorted(home.curves.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for old in [path for path in by_use if path.is_dir()][:-MOST_PASSING]:
            shutil.rmtree(old, ignore_errors=True)
        return Home(folder, is_passing=True)
    return None


def _short_home() -> Home:
    """A home that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="ablations-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Home(folder, is_passing=True)
