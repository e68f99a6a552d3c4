"""Reads curves from a CSV file; each belongs to one run: a variant and, if given, a seed.

A file that `platform export --curves` has written also says how noisy each score is, which runs began alike, which
ended by themselves, the unit of compute, and how its study fits the curves, so that it gives the study's own answers.
"""

import math
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from ablations.errors import Place
from ablations.fit.curve import VARIANCES, Curve
from ablations.fit.options import FitSettings
from ablations.fit.settings_text import settings_in
from ablations.fit.table_file import TextTable, number_in, read_table
from ablations.fit.wide_table import OTHER_NAMES, by_reading
from ablations.nearest_name import MAX_NAMES

REQUIRED_COLUMNS = ("curve", "compute", "score")
COUNT_COLUMNS = ("prompts", "samples", "samples_per_prompt", "step")
SEED_COLUMN = "seed"
SCALE_COLUMN = "scale"
START_COLUMN, STATE_COLUMN = "run_start", "run_state"
"""Columns with the same value in every row of a run."""
UNIT_COLUMN, REFERENCE_COLUMN, FIT_COLUMN = "compute_unit", "reference_variant", "fit_settings"
"""Columns with the same value in every row of a file."""
OF_A_STUDY = (*VARIANCES, START_COLUMN, STATE_COLUMN, UNIT_COLUMN, REFERENCE_COLUMN, FIT_COLUMN)
"""Columns that only `platform` itself writes."""
COLUMNS = {*REQUIRED_COLUMNS, SEED_COLUMN, SCALE_COLUMN, *COUNT_COLUMNS, *OF_A_STUDY}
STOPPED = "stopped"
"""State of a run that ended by itself or by a rule, so that its curve ends where it ends."""
SEED_TEXT = re.compile(r"(?:s(?:eed)?[-_= ]?)?(\d{1,18})(?:\.0*)?", re.IGNORECASE)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_Key = TypeVar("_Key", str, tuple[str, int])


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedCurve:
    """The curve of one run of a variant: `SeedCurve(variant="dapo", seed=1, curve=<Curve 'dapo-s1': ...>)`."""

    variant: str
    seed: int
    curve: Curve
    has_seed: bool = False
    """True if the file has a column of seeds."""
    is_stopped: bool = False
    """True if the file says that the run ended by itself or by a rule."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Declarations of a file about all of its curves: `Declared(compute_unit="modelled GPU-hours",
    settings=FitSettings())`."""

    compute_unit: str = "compute"
    reference: str = ""
    """The variant with which the others are compared."""
    settings: FitSettings = field(default_factory=FitSettings)


def read_curves(path: Path | str) -> list[Curve]:
    """Read curves from a CSV file with columns curve, compute, score and optionally seed, prompts, samples,
    samples_per_prompt, step.

    Curves keep the order of their first row; the readings of each are sorted by compute. With a seed column, each seed
    is a separate curve, `scalerl-s0`. Raises FileError with the line and column of anything unusable.
    """
    return [run.curve for run in read_seed_curves(path)]


def read_scales(path: Path | str) -> list[str]:
    """The scales that the column `scale` names, in the order of their first row; empty without the column."""
    table = table_of_curves(path)
    return _scales(table, path) if SCALE_COLUMN in table.header else []


def _scales(table: TextTable, path: Path | str) -> list[str]:
    places = ((Place(source=str(path), line=line).inside(SCALE_COLUMN), row) for line, row in table.rows)
    return list(dict.fromkeys(_name(row[SCALE_COLUMN], place) for place, row in places))


def read_seed_curves(path: Path | str, *, scale: str | None = None) -> list[SeedCurve]:
    """Read curves as runs: the column `curve` names the variant; the seed is 0 without a column `seed`.

    `scale` keeps only the rows with this value in the column `scale`; without it, a file with several is refused.
    """
    table = table_of_curves(path)
    header, rows = table.header, table.rows
    _check_header(header, Place(source=str(path)))
    if scale is not None:
        rows = [(line, row) for line, row in rows if row[SCALE_COLUMN] == scale]
    elif SCALE_COLUMN in header and len(several := _scales(table, path)) > 1:
        raise Place(source=str(path)).error(
            f"runs of {len(several)} scales ({', '.join(several[:MAX_NAMES])})",
            f"run `platform ladder {shlex.quote(str(path))}`, or keep the rows of one scale",
        )
    columns = ["compute", "score", *(column for column in COUNT_COLUMNS if column in header)]
    variances = [column for column in VARIANCES if column in header and "samples" in header]
    readings: dict[tuple[str, int], dict[float, dict[str, float]]] = {}
    of_runs: dict[str, dict[tuple[str, int], str]] = {START_COLUMN: {}, STATE_COLUMN: {}}
    for line, row in rows:
        place = Place(source=str(path), line=line)
        name = _name(row["curve"], place.inside("curve"))
        seed = _seed(row[SEED_COLUMN], place.inside(SEED_COLUMN)) if SEED_COLUMN in header else 0
        reading = {column: number_in(row[column], column, place.inside(column)) for column in columns}
        reading |= {one: number_in(row[one], one, place.inside(one)) if row[one] else math.nan for one in variances}
        for column, known in of_runs.items():
            _same(known, (name, seed), row.get(column, ""), place.inside(column))
        _count_samples(reading, place)
        compute = reading["compute"]
        if compute in readings.setdefault((name, seed), {}):
            of_seed = f", seed {seed}" if SEED_COLUMN in header else ""
            right = "write one score per compute" + ("" if of_seed else ", or tell runs apart with a column 'seed'")
            raise place.inside("compute").error(f"{compute:g} appears twice in curve {name!r}{of_seed}", right)
        readings[name, seed][compute] = reading
    if not readings:
        raise Place(source=str(path)).error("no rows below the header", "write one row per evaluation")
    found = []
    for (name, seed), of_run in readings.items():
        called, start = (f"{name}-s{seed}", f"seed {seed}") if SEED_COLUMN in header else (name, "")
        start = of_runs[START_COLUMN][name, seed] if START_COLUMN in header else start
        rows = [of_run[compute] for compute in sorted(of_run)]
        numbers = {column: np.array([row[column] for row in rows]) for column in rows[0]}
        found.append(
            SeedCurve(
                variant=name,
                seed=seed,
                curve=Curve(name=called, start=start, **numbers),
                has_seed=SEED_COLUMN in header,
                is_stopped=of_runs[STATE_COLUMN][name, seed] == STOPPED,
            )
        )
    return found


def read_declared(path: Path | str, *, scale: str | None = None) -> Declared:
    """Declarations of the file about all of its curves, or about those of one scale; raises FileError if rows
    contradict."""
    table, known = table_of_curves(path), dict[str, str]()
    for line, row in table.rows:
        if scale is None or row.get(SCALE_COLUMN) == scale:
            for column in (UNIT_COLUMN, REFERENCE_COLUMN, FIT_COLUMN):
                place = Place(source=str(path), line=line).inside(column)
                _same(known, column, row.get(column, ""), place)
    place = Place(source=str(path)).inside(FIT_COLUMN)
    return Declared(
        compute_unit=known.get(UNIT_COLUMN) or table.compute_name,
        reference=known.get(REFERENCE_COLUMN, ""),
        settings=settings_in(known.get(FIT_COLUMN, ""), place),
    )


def _same(known: dict[_Key, str], key: _Key, text: str, place: Place) -> None:
    """Remember the text of a column, which other rows must repeat; raises FileError if they do not."""
    if (before := known.setdefault(key, text)) != text:
        raise place.error(f"found {text!r} below {before!r}", "rows that belong together say the same here")


def table_of_curves(path: Path | str) -> TextTable:
    """The table with this platform's names for the columns, which may be in any case; if it has a column for each run,
    with a row for each reading instead."""
    table = read_table(Path(path))
    ours = {
        column: column.casefold()
        for column in table.header
        if column.casefold() in COLUMNS and column.casefold() not in table.header
    }
    if len({*ours.values()}) == len(ours):
        rows = [(line, {ours.get(column, column): text for column, text in row.items()}) for line, row in table.rows]
        table = TextTable(header=[ours.get(column, column) for column in table.header], rows=rows)
    if {"curve", "score"} & {*table.header}:
        return table
    return by_reading(table, Place(source=str(path)), kept=COLUMNS) or table


def _check_header(header: list[str], place: Place) -> None:
    if missing := [column for column in REQUIRED_COLUMNS if column not in header]:
        raise place.error(
            f"missing columns {missing}, found {header}",
            f"required columns are {list(REQUIRED_COLUMNS)}, optional ones {[SEED_COLUMN, *COUNT_COLUMNS]}; or 'step' "
            f"or 'compute' and a column for each run; {OTHER_NAMES}",
        )
    if "samples_per_prompt" in header and not {"prompts", "samples"} & {*header}:
        raise place.error(
            "a column 'samples_per_prompt' without a column 'prompts'", "add 'prompts': samples is the product of both"
        )


def _count_samples(reading: dict[str, float], place: Place) -> None:
    """Set `samples` to the number of generations behind the score; raises FileError if the row contradicts itself."""
    each, prompts, samples = reading.pop("samples_per_prompt", None), reading.get("prompts"), reading.get("samples")
    if each is not None and prompts is not None:
        product = reading["samples"] = each * prompts
        if samples not in (None, product):
            raise place.inside("samples").error(
                f"found {samples:g} beside {prompts:g} prompts with {each:g} samples_per_prompt",
                f"samples counts all generations behind the score, here {product:g}; omit this column",
            )
    elif samples is not None and prompts is not None and samples < prompts:
        raise place.inside("samples").error(
            f"found {samples:g} beside {prompts:g} prompts",
            f"samples counts all generations behind the score; for {samples:g} per prompt write {samples * prompts:g}, "
            "or use a column 'samples_per_prompt'",
        )


def _name(name: str, place: Place) -> str:
    if not name:
        raise place.error("empty", f"every row must name its {place.key}")
    if CONTROL_CHARACTER.search(name):
        raise place.error(f"found {name!r}", "a name must not contain control characters")
    return name


def seed_in(text: str) -> int | None:
    """The seed in a text such as "1", "1.0", "s1" or "seed_1"; None for any other."""
    found = SEED_TEXT.fullmatch(text)
    return int(found[1]) if found else None


def _seed(text: str, place: Place) -> int:
    if (seed := seed_in(text)) is None:
        raise place.error(f"found {text}", "a seed must be a whole number")
    return seed
