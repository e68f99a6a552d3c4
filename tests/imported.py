"""Runs of other trainers, imported into a home folder and read back from it."""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ablations.diagnosis.history import History, history_of_run
from ablations.findings.results import Results, read_results
from ablations.fit.curve import Curve
from ablations.home.home import Home
from ablations.home.labels import FIRST_REFERENCE
from ablations.home.source import source_of
from ablations.home.started_sweep import StartedSweep
from ablations.imports.import_runs import import_runs
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning
from ablations.logs.naming import Naming
from ablations.readings.task_curves import curve_of
from scalerl.run.run_log import read_rows


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """A run with its curve, or the reason why it has none."""

    name: str
    variant: str
    seed: int
    place: str
    start: str
    curve: Curve | None
    reason: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ImportedStudy:
    """The runs of a plan, and its notes but the one on the reference."""

    sweep: StartedSweep
    runs: tuple[ImportedRun, ...]
    notes: tuple[str, ...]


def sweep_of(foreign: Foreign, home: Path | None = None) -> StartedSweep:
    """The sweep of these runs in a home folder, by default a new one."""
    place = Home(Path(tempfile.mkdtemp()) if home is None else home)
    (order,) = foreign.orders()
    return import_runs(place, order).sweep


def study_of(foreign: Foreign, home: Path | None = None) -> ImportedStudy:
    """The runs as their folders have them."""
    sweep = sweep_of(foreign, home)
    runs = []
    for variant in sweep.plan.variants:
        for run in variant.runs:
            folder, name = sweep.run(run.id), f"{variant.name}-s{run.seed}"
            status, source = folder.read_status(), source_of(folder)
            assert source is not None
            runs.append(
                ImportedRun(
                    name=name,
                    variant=variant.name,
                    seed=run.seed,
                    place=source.place,
                    start=source.start,
                    curve=curve_of(read_rows(folder.metrics), name),
                    reason=status.message,
                    warnings=status.warnings,
                )
            )
    notes = tuple(one for one in sweep.plan.notes if one != FIRST_REFERENCE.format(sweep.plan.reference))
    return ImportedStudy(sweep=sweep, runs=tuple(runs), notes=notes)


def logs_named(paths, meaning: LogMeaning, naming: Naming | None = None) -> Foreign:
    """Logs as a command line names them."""
    given = {key: value for key, value in asdict(naming or Naming()).items() if value is not None}
    return Foreign(names=tuple(map(str, paths)), meaning=meaning, naming=given)


def study_of_logs(paths, meaning: LogMeaning, naming: Naming | None = None, *, home: Path | None = None):
    """The runs of these logs."""
    return study_of(logs_named(paths, meaning, naming), home)


def compared(foreign: Foreign, home: Path, reference: str | None = None) -> Results:
    """The comparison that `platform compare` makes of runs that are not imported."""
    return read_results(foreign.opened_one(Home(home), reference=reference))


def history_of_log(path: Path, trainer: str, compute: str = "step", **meaning) -> History:
    """What `platform doctor` sees of the only run in a log, once it is imported."""
    foreign = logs_named([path], LogMeaning(trainer=trainer, compute=compute, **meaning))
    sweep = sweep_of(foreign)
    (run,) = sweep.plan.runs
    return history_of_run(sweep.run(run.id), run.id)
