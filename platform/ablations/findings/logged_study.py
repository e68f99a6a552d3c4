"""The runs of another trainer, from their logs on disk, as a study to compare.

A parsed log is saved in a file named by everything that determines it: path, size and time of its files, the meaning of
its columns, and the code of this room. The folder may be deleted at any time.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from ablations import logs
from ablations.errors import AblationsError
from ablations.findings.other_trainers import MeasuredRun, MeasuredStudy
from ablations.fit import curve_file, table_file
from ablations.fit.curve import Curve
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.naming import Naming
from ablations.logs.several_runs import runs_in
from ablations.logs.sources import LogSource, find_log, name_of_path
from ablations.readings.kept import code_in, kept_tree
from ablations.readings.run_reading import is_at_rest
from ablations.terminal.progress_bar import Done, counted_off

TABLE_CODE = (curve_file.__file__, table_file.__file__)
MOST_SAID = 3
"""Maximum number of runs whose reasons one error lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ParsedRun:
    """A run of a log, or the reason why it cannot be compared: `ParsedRun(place="a.jsonl", variant="a", seed=None)`."""

    place: str
    variant: str = ""
    seed: int | None = None
    curve: Curve | None = None
    warnings: tuple[str, ...] = ()
    reason: str = ""


def study_of_logs(
    paths: Sequence[Path], meaning: LogMeaning, naming: Naming, *, kept: Path | None = None, done: Done | None = None
) -> MeasuredStudy:
    """The runs of these files and folders; runs that cannot be read are in the notes, with the reason.

    Runs without a seed are numbered in the order given. Parsed logs are saved in the folder `kept`. `done` receives the
    number of logs read and the total. Raises AblationsError if no run can be read, or if two runs have the same variant
    and seed.
    """
    meaning.check()
    naming.check()
    runs: list[ParsedRun] = []
    sources: dict[str, LogSource] = {}
    for path in paths:
        try:
            source = find_log(path)
        except AblationsError as error:
            runs.append(ParsedRun(place=str(path), reason=str(error)))
            continue
        first = source.files[0]
        run = first.name if first.suffix == ".wandb" else str(path)  # W&B's name has the id of the run
        files = sources[run].files if run in sources else ()
        sources[run] = replace(source, files=tuple(sorted({*files, *source.files}) if files else source.files))
    for source in counted_off(_told_by_folder([*sources.values()]), done):
        runs += _parsed(source, meaning, naming, kept)
    failed = [run for run in runs if run.curve is None]
    if len(failed) == len(runs):
        more = f"\nand {len(failed) - MOST_SAID} more" if len(failed) > MOST_SAID else ""
        raise AblationsError("\n".join(run.reason for run in failed[:MOST_SAID]) + more)
    return MeasuredStudy(
        name=_study_name(paths),
        compute_name=meaning.compute_name,
        runs=tuple(_numbered(runs)),
        notes=tuple(f"A run is left out: {run.reason}." for run in failed),
    )


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


def _parsed(source: LogSource, meaning: LogMeaning, naming: Naming, kept: Path | None) -> tuple[ParsedRun, ...]:

    def read() -> tuple[ParsedRun, ...]:
        keys = [key for key in (naming.variant, naming.seed) if key]
        return tuple(_run(log, meaning, naming) for one in source.read(meaning.steps) for log in runs_in(one, keys))

    try:
        if kept is None:
            return read()
        return kept_tree(
            kept / f"log-{_key(source, meaning, naming)}.npz",
            read,
            tuple,
            classes=(ParsedRun, Curve),
            is_final=lambda _: all(map(is_at_rest, source.files)),
        )[0]
    except AblationsError as error:
        return (ParsedRun(place=str(source.files[0]), reason=str(error)),)


def _run(log: Log, meaning: LogMeaning, naming: Naming) -> ParsedRun:
    variant, seed = "", None
    try:
        variant, seed = naming.of(log.name, log.config, log.place)
        name, start = (variant, "") if seed is None else (f"{variant}-s{seed}", f"seed {seed}")
        curve, warnings = curve_of_log(log, meaning, name=name, start=start)
    except AblationsError as error:
        return ParsedRun(place=log.place, variant=variant, seed=seed, reason=str(error))
    return ParsedRun(place=log.place, variant=variant, seed=seed, curve=curve, warnings=tuple(warnings))


def _numbered(runs: Sequence[ParsedRun]) -> list[MeasuredRun]:
    """The runs that have a curve, each with a seed; AblationsError if two runs of a variant have the same seed.

    A run without a curve counts too: it may be the second part of a resumed run, which lacks the times of the first.
    """
    told: dict[tuple[str, int], str] = {}
    for run in runs:
        if run.seed is None:
            continue
        if other := told.get((run.variant, run.seed)):
            raise AblationsError(
                f"{other} and {run.place} are both {run.variant}, seed {run.seed}; tell runs apart with --pattern or "
                "--seed, join the parts of a run that was resumed, or name only one of them"
            )
        told[run.variant, run.seed] = run.place
    found = []
    for run in runs:
        if run.curve is None:
            continue
        seed = run.seed
        if seed is None:
            seed = next(number for number in range(len(runs)) if (run.variant, number) not in told)
            if any(other.variant == run.variant and other.seed is not None for other in runs):
                said = f"{run.place} has no seed, as other runs of {run.variant} have, and counts as seed {seed}"
                run = replace(run, warnings=(*run.warnings, said))
            run = replace(run, warnings=(*run.warnings, *_after_another(run, runs)))
            told[run.variant, seed] = run.place
        found.append(
            MeasuredRun(
                variant=run.variant, seed=seed, id=f"{run.variant}-s{seed}", curve=run.curve, warnings=run.warnings
            )
        )
    return found


def _after_another(run: ParsedRun, runs: Sequence[ParsedRun]) -> Iterator[str]:
    """A note if a run without a seed begins after another of its variant ends, as the second part of a run does."""
    for one in runs:
        steps = [None if this.curve is None else this.curve.step for this in (one, run)]
        if one.variant == run.variant and steps[0] is not None and steps[1] is not None and steps[0][-1] < steps[1][0]:
            yield (
                f"{run.place} begins at step {steps[1][0]:g}, after {one.place} ends at {steps[0][-1]:g}; if they are "
                "parts of one run, join them"
            )


def _study_name(paths: Sequence[Path]) -> str:
    """The folder that all logs are in, or the log's own name."""
    if len(paths) == 1:
        return paths[0].stem
    parents = {path.absolute().parent for path in paths}
    return next(iter(parents)).name if len(parents) == 1 else "runs"


def _key(source: LogSource, meaning: LogMeaning, naming: Naming) -> str:
    stats = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in source.files]
    content = [code_of_logs(), source.name, stats, asdict(meaning), asdict(naming)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@cache
def code_of_logs() -> str:
    """SHA-256 of the source of the room `logs`, of this file and of those that read tables."""
    return code_in(
        (*sorted(Path(logs.__file__).parent.glob("*.py")), *(Path(one) for one in TABLE_CODE), Path(__file__))
    )
