"""Turns the runs of other trainers into run folders and a plan, after which they are runs like any other.

    home/runs/3f0c9a1b2d4e/{metrics.jsonl, status.json, source.json}      one folder per run
    home/sweeps/grpo/{plan.json, sources.json}                            the plan, and what was read from where

Importing again reads what has changed, and adds what is new. A sweep or run that was trained here is never touched.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

import ablations
from ablations import logs
from ablations.answers.footing import MOST_APART, footing_of
from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.fit import curve_file, table_file, wide_table
from ablations.fit.curve_file import Declared
from ablations.fit.options import MIN_READINGS, FitSettings
from ablations.home.home import Home, check_sweep_name
from ablations.home.labels import FIRST_REFERENCE
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.source import RunSource, SourceFile, is_imported
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.imports.found_run import ForeignSource, FoundRun, RunRecord, SourceRecord
from ablations.imports.numbering import numbered
from ablations.nearest_name import did_you_mean
from ablations.readings.kept import code_in
from ablations.terminal.progress_bar import Done, counted_off
from ablations.terminal.short_names import axes_in, meant, shown_names
from ablations.text import compute_text, counted
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import RunFolder, write_atomically
from scalerl.run.status import RunStatus

SOURCES = "sources.json"
MOST_SAID = 3
"""Maximum number of runs whose reasons one error lists."""
IMPORT_LIMIT_S = 60.0
_RECORDS = TypeAdapter(tuple[SourceRecord, ...])


@dataclass(frozen=True, kw_only=True)
class ImportOrder:
    """What to import, and as what: `ImportOrder(name="grpo", sources=[log], compute_name="GPU-hours", command="")`."""

    name: str
    sources: Sequence[ForeignSource]
    compute_name: str
    """Unit of the compute in tables."""
    command: str
    """The command that imports it again."""
    reference: str | None = None
    """By default that of an earlier import, else `declared`, else the first variant."""
    settings: FitSettings | None = None
    """Settings of fits; by default those of an earlier import, else `declared`."""
    declared: Declared = field(default_factory=Declared)
    """Reference and settings of fits that the sources name themselves."""


@dataclass(frozen=True, kw_only=True)
class ImportedRuns:
    """The result of an import: `ImportedRuns(sweep=grpo, num_new=6, num_read_again=0, num_unchanged=0)`."""

    sweep: StartedSweep
    num_new: int
    num_read_again: int
    num_unchanged: int

    @property
    def said(self) -> str:
        """The result in words: `2 new, 1 read again, 3 unchanged`."""
        numbers = {"new": self.num_new, "read again": self.num_read_again, "unchanged": self.num_unchanged}
        return ", ".join(f"{number} {word}" for word, number in numbers.items() if number)


def import_runs(home: Home, order: ImportOrder, *, done: Done | None = None) -> ImportedRuns:
    """Import all runs of these sources as the sweep `order.name`; `done` receives the number of sources read and their
    total.

    Raises AblationsError, and changes no sweep, if no run can be read, if two have the same variant and seed, or if a
    sweep of this name was trained here.
    """
    check_sweep_name(order.name)
    home.require_writable()
    with _alone(home, order.name):
        before = _before(home, order)
        known = {one.key: one for one in _records(home, order.name)}
        new: list[RunFolder] = []
        try:
            read: dict[str, SourceRecord] = {}
            again: set[str] = set()
            for source in counted_off(order.sources, done):
                earlier = known.get(source.key)
                if earlier is not None and _is_unchanged(earlier, source):
                    read[source.key] = earlier
                else:
                    read[source.key] = _read(home, order.name, source, new)
                    again |= {run.id for run in read[source.key].runs}
            given = {(run.variant, run.seed) for one in read.values() for run in one.runs}
            stay = [one for one in known.values() if one.key not in read and not _is_replaced(one, given)]
            records = [*stay, *read.values()]
            plan, runs = _planned(order, before, records)
        except BaseException:
            for folder in new:
                shutil.rmtree(folder.path, ignore_errors=True)
            raise
        for run, of in runs:
            _write_source(home.run(run.id), run, of)
        sweep = StartedSweep(home=home, plan=plan)
        if before is None or asdict(before) != asdict(plan):
            sweep.write_plan()
        _write_records(home, order.name, records)
        planned = {run.id for run, _ in runs}
        for run in (run for one in known.values() for run in one.runs if run.id not in planned):
            shutil.rmtree(home.run(run.id).path, ignore_errors=True)
    known_ids = {run.id for run in before.runs} if before else set[str]()
    return ImportedRuns(
        sweep=sweep,
        num_new=len(planned - known_ids),
        num_read_again=len(planned & known_ids & again),
        num_unchanged=len((planned & known_ids) - again),
    )


@contextmanager
def _alone(home: Home, name: str) -> Iterator[None]:
    """Hold the sweep's lock, so that no other command writes it."""
    home.sweep(name).mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home.lock_file(name), timeout=IMPORT_LIMIT_S):
            yield
    except Timeout:
        raise AblationsError(
            f"another command is working on sweep '{name}'; wait for it, or choose --as NAME"
        ) from None
    finally:
        if not home.plan_file(name).exists():
            shutil.rmtree(home.sweep(name), ignore_errors=True)


def _before(home: Home, order: ImportOrder) -> Plan | None:
    """The plan of an earlier import; AblationsError if the sweep was trained here, or counts another compute."""
    if not home.plan_file(order.name).exists():
        return None
    plan = read_sweep(home, order.name).plan
    if not plan.imported:
        raise AblationsError(f"sweep '{order.name}' was trained in {home.path}; choose another name with --as NAME")
    if plan.compute_name != order.compute_name:
        raise AblationsError(
            f"sweep '{order.name}' counts compute in {plan.compute_name}, not in {order.compute_name}; choose another "
            "name with --as NAME"
        )
    return plan


def _records(home: Home, name: str) -> tuple[SourceRecord, ...]:
    """The sources of earlier imports; none if the file is damaged, so that everything is read again."""
    try:
        return checked(parsed_json((home.sweep(name) / SOURCES).read_bytes()), _RECORDS)
    except (OSError, ValueError):
        return ()


def _write_records(home: Home, name: str, records: Sequence[SourceRecord]) -> None:
    write_atomically(home.sweep(name) / SOURCES, json.dumps([asdict(one) for one in records], indent=1).encode())


def _is_unchanged(record: SourceRecord, source: ForeignSource) -> bool:
    """True if nothing that decides the runs of a source has changed since it was read."""
    if not source.files or (record.version, record.options) != (version_of_readers(), _hash(source.options)):
        return False
    paths = [str(path.absolute()) for path in source.files]
    return paths == [one.path for one in record.files] and all(one.is_unchanged for one in record.files)


def _is_replaced(record: SourceRecord, given: Set[tuple[str, int | None]]) -> bool:
    """True for a source whose files are gone and whose runs are given by others now."""
    return record.is_gone and all(run.seed is not None and (run.variant, run.seed) in given for run in record.runs)


def _read(home: Home, sweep: str, source: ForeignSource, new: list[RunFolder]) -> SourceRecord:
    """Read a source and write the log of each of its runs; `new` receives the folders that are made."""
    files = [SourceFile.of(path) for path in source.files]
    found, notes = source.read()
    runs: list[RunRecord] = []
    nth: dict[tuple[str, int | None], int] = {}
    for run in found:
        number = nth[run.variant, run.seed] = nth.get((run.variant, run.seed), -1) + 1
        run_id = _hash([sweep, source.key, run.variant, run.seed, number])
        record = RunRecord.of(run_id, run)
        runs.append(record)
        if record.has_rows:
            made = RunSource(
                reader=source.reader,
                version=version_of_readers(),
                place=record.place,
                start=record.start,
                read_as=record.read_as,
                files=(*files,),
            )
            _write_log(home.run(run_id), run, made, new)
    return SourceRecord(
        key=source.key,
        reader=source.reader,
        version=version_of_readers(),
        options=_hash(source.options),
        files=tuple(files),
        runs=tuple(runs),
        notes=tuple(notes),
    )


def _write_log(folder: RunFolder, run: FoundRun, source: RunSource, new: list[RunFolder]) -> None:
    """Write source and run log if their content is new; AblationsError if a run of this id was trained here.

    The source comes first: a log that a killed import leaves without one would count as trained here.
    """
    if not folder.path.exists():
        folder.path.mkdir(parents=True)
        new.append(folder)
    elif folder.metrics.exists() and not is_imported(folder):
        raise AblationsError(f"{folder.path} was trained here; import into another home folder with --home FOLDER")
    source.write(folder)
    content = b"".join(json.dumps(row).encode() + b"\n" for row in run.rows)
    if not folder.metrics.exists() or folder.metrics.read_bytes() != content:
        write_atomically(folder.metrics, content)


def _write_source(folder: RunFolder, run: RunRecord, record: SourceRecord) -> None:
    """Write status and source of an imported run."""
    folder.path.mkdir(parents=True, exist_ok=True)
    status = RunStatus(
        state="stopped" if run.is_stopped else "done",
        step=int(run.steps[1]) if run.steps else 0,
        compute_gpu_hours=run.last_compute or 0.0,
        budget_gpu_hours=run.last_compute or 0.0,
        pass_rate=run.pass_rate,
        warnings=run.warnings,
        message=run.reason,
        heartbeat=max((one.modified_ns for one in record.files), default=0) / 1e9,
    )
    if folder.read_status() != status:
        folder.write_status(status)
    source = RunSource(
        reader=record.reader,
        version=record.version,
        place=run.place,
        start=run.start,
        read_as=run.read_as,
        files=record.files,
    )
    source.write(folder)


def _planned(
    order: ImportOrder, before: Plan | None, records: Sequence[SourceRecord]
) -> tuple[Plan, list[tuple[RunRecord, SourceRecord]]]:
    """The plan, and each of its runs with its source; AblationsError if there is none, or no such reference."""
    of = {run.id: record for record in records for run in record.runs}
    every = [run for record in records for run in record.runs]
    seeds = {run.id: run.seed for run in before.runs} if before else {}
    runs = numbered(every, seeds)
    if not runs:
        reasons = [run.reason for run in every]
        more = f"\nand {len(reasons) - MOST_SAID} more" if len(reasons) > MOST_SAID else ""
        raise AblationsError("\n".join([*reasons[:MOST_SAID]]) + more)
    kept = {run.id for run in runs}
    called = shown_names(run.variant for run in runs)
    of_variant = {short: [run for run in runs if run.variant == name] for name, short in called.items()}
    reference, on_reference = _reference(order, before, [*of_variant])
    footing = footing_of({short: _ends(some) for short, some in of_variant.items()}, reference)
    notes = (
        *on_reference,
        *_on_scores(runs, called),
        *(note for record in records for note in record.notes),
        *(f"A run is left out: {run.reason}." for run in every if run.id not in kept),
        *_on_ends(runs, order.compute_name),
    )
    plan = Plan(
        sweep=order.name,
        command=order.command,
        reference=reference,
        compute_name=order.compute_name,
        compute_unit_gpu_hours=1.0,
        budget_gpu_hours=1.0 if footing is None else footing.compute,
        **_window(order.settings or order.declared.settings, before if order.settings is None else None),
        imported=True,
        notes=notes,
        variants=tuple(
            PlannedVariant(
                name=short,
                overrides={},
                runs=tuple(PlannedRun(seed=run.seed, id=run.id) for run in of_variant[short] if run.seed is not None),
                axes=dict(axes_in(name)),
            )
            for name, short in called.items()
        ),
    )
    return plan, [(run, of[run.id]) for run in runs]


def _reference(order: ImportOrder, before: Plan | None, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The reference among these variants, with a note if nobody has chosen it; AblationsError if there is none such."""
    first, declared = FIRST_REFERENCE.format(names[0]), order.declared.reference
    is_chosen = bool(order.reference or declared) or (before is not None and first not in before.notes)
    reference = meant(order.reference or (before.reference if before else declared or names[0]), names)
    if reference not in names:
        raise AblationsError(
            f"{order.name}: --reference: no variant {reference!r}; {did_you_mean(reference, names, 'variants')}"
        )
    return reference, () if is_chosen else (first,)


def _ends(runs: Sequence[RunRecord]) -> list[float]:
    """The last compute of each run that has enough readings for a fit."""
    return [run.last_compute for run in runs if run.last_compute is not None and run.num_readings >= MIN_READINGS]


def _window(settings: FitSettings, before: Plan | None) -> dict[str, Any]:
    """The window and the settings of fits in a plan, or those of an earlier one."""
    if before is not None:
        return {name: getattr(before, name) for name in ("fit_from_gpu_hours", "fit_to_gpu_hours", "fit")}
    is_auto = settings.fit_from == "auto"
    return {
        "fit_from_gpu_hours": 0.0 if is_auto else float(settings.fit_from),
        "fit_to_gpu_hours": settings.fit_to,
        "fit": {
            "r0": settings.r0,
            "loss": settings.loss,
            "cutoff": "auto" if is_auto else "given",
            "ceiling": settings.ceiling,
        },
    }


def _on_scores(runs: Sequence[RunRecord], called: Mapping[str, str]) -> list[str]:
    """A note if the scores of the runs come from several columns, with the variants of each."""
    of_scores: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.score and run.last_compute is not None:
            of_scores.setdefault(run.score, {})[called[run.variant]] = None
    if len(of_scores) < 2:
        return []
    listed = []
    for score, variants in [*of_scores.items()][:MOST_SAID]:
        names = [*variants]
        more = f" and {len(names) - MOST_SAID} more" if len(names) > MOST_SAID else ""
        listed.append(f"{score} in {', '.join(names[:MOST_SAID])}{more}")
    more = f"; and {len(of_scores) - MOST_SAID} more" if len(of_scores) > MOST_SAID else ""
    return [
        f"The scores come from {len(of_scores)} columns: {'; '.join(listed)}{more}. Unless they are of one held-out "
        "set, differences between runs are differences between sets; choose a column that all runs have with --score."
    ]


def _on_ends(runs: Sequence[RunRecord], compute_name: str) -> list[str]:
    """A note if the runs were trained to different computes."""
    ends = [run.last_compute for run in runs if run.last_compute is not None]
    if not ends or max(ends) <= MOST_APART * max(min(ends), math.ulp(0.0)):
        return []
    first, last = map(compute_text, (min(ends), max(ends)))
    return [f"The last evaluations of the {counted(len(ends), 'run')} lie between {first} and {last} {compute_name}."]


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@cache
def version_of_readers() -> str:
    """Version of the platform with ten digits of the hash of the code that reads logs and tables."""
    rooms = (Path(logs.__file__).parent, Path(__file__).parent)
    files = [path for room in rooms for path in sorted(room.glob("*.py"))]
    tables = [Path(str(one.__file__)) for one in (curve_file, table_file, wide_table)]
    return f"{ablations.__version__} {code_in([*files, *tables])[:10]}"
