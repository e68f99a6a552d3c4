"""Logs of other trainers on disk: which files make a run, and the runs in them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.imports.found_run import ForeignSource, FoundRun
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.naming import Naming
from ablations.logs.rows_of_run import rows_of_curve
from ablations.logs.several_runs import runs_in
from ablations.logs.sources import LogSource, find_log, name_of_path
from ablations.logs.tensorboard_page import steps_off_page
from ablations.logs.training_rows import training_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRuns:
    """The log of one run, or a table of several: `LoggedRuns(key="/data/a.jsonl", source=source, meaning=..., ...)`."""

    key: str
    source: LogSource
    meaning: LogMeaning
    naming: Naming

    @property
    def reader(self) -> str:
        return self.meaning.trainer or "columns"

    @property
    def files(self) -> Sequence[Path]:
        return self.source.files

    @property
    def options(self) -> Mapping[str, Any]:
        return {
            "name": self.source.name,
            "notes": self.source.notes,
            "meaning": asdict(self.meaning),
            "naming": asdict(self.naming),
        }

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """The runs of the log; an unreadable one is named after its file."""
        keys = [key for key in (self.naming.variant, self.naming.seed) if key]
        try:
            logs = [log for one in self.source.read(self.meaning.steps) for log in runs_in(one, keys)]
            return [self._run(log) for log in logs], ()
        except AblationsError as error:
            variant, seed = "", None
            with suppress(AblationsError):
                variant, seed = self.naming.of(self.source.name, {}, str(self.files[0]))
            return [FoundRun(place=str(self.files[0]), variant=variant, seed=seed, reason=str(error))], ()

    def _run(self, log: Log) -> FoundRun:
        found, of_training = FoundRun(place=log.place), ""
        try:
            variant, seed = self.naming.of(log.name, log.config, log.place)
            found = replace(found, variant=variant, seed=seed, start="" if seed is None else f"seed {seed}")
            try:
                found = replace(found, training=training_rows(log, self.meaning))
            except AblationsError as error:  # of little weight beside a curve
                of_training = str(error)
            curve, warnings = curve_of_log(log, self.meaning, name=variant, start="")
        except AblationsError as error:
            return replace(found, reason="; ".join(dict.fromkeys(filter(None, (of_training, str(error))))))
        off_page = steps_off_page(log, self.meaning)
        evaluations = [row | {"off_page": True} if row["step"] in off_page else row for row in rows_of_curve(curve)]
        found = replace(found, score=self.meaning.score_name(log.columns), read_as=self.meaning.described(log.columns))
        return replace(found, curve=curve, evaluations=evaluations, warnings=tuple(warnings))


@dataclass(frozen=True, kw_only=True)
class NoLog:
    """A path without a log: `NoLog(key="/data/a.txt", reason="a.txt: no readable log; ...")`."""

    key: str
    reason: str
    reader: str = "columns"
    files: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """One run, which is left out."""
        return [FoundRun(place=self.key, reason=self.reason)], ()


def logged_runs(paths: Sequence[Path], meaning: LogMeaning, naming: Naming) -> list[ForeignSource]:
    """The logs at these paths; the parts of a W&B run are joined. AblationsError without a path."""
    meaning.check()
    naming.check()
    if not paths:
        raise AblationsError("logs: name one file or folder per run, such as runs/*")
    without: list[ForeignSource] = []
    sources: dict[str, LogSource] = {}
    for path in paths:
        try:
            source = find_log(path)
        except AblationsError as error:
            without.append(NoLog(key=str(path.absolute()), reason=str(error)))
            continue
        first = source.files[0]
        run = first.name if first.suffix == ".wandb" else str(path.absolute())  # W&B's name has the id of the run
        files = sources[run].files if run in sources else ()
        sources[run] = replace(source, files=tuple(sorted({*files, *source.files}) if files else source.files))
    told = _told_by_folder([*sources.values()])
    logs = zip(sources, told, strict=True)
    return [*without, *(LoggedRuns(key=key, source=one, meaning=meaning, naming=naming) for key, one in logs)]


def _told_by_folder(sources: Sequence[LogSource]) -> list[LogSource]:
    """The sources; if all have one name without a seed, under those of the lowest folders that differ: `dapo/run.csv`
    is `dapo`, `dapo/seed1/run.csv` is `dapo-seed1`."""
    if len({source.name for source in sources}) != 1 or Naming().of(sources[0].name, {}, "")[1] is not None:
        return [*sources]
    folders = [source.files[0].absolute().parents for source in sources]
    told = next((level for level in zip(*folders, strict=False) if len({one.name for one in level}) > 1), ())
    if not told:
        return [*sources]
    return [replace(source, name=name_of_path(folder)) for source, folder in zip(sources, told, strict=True)]
