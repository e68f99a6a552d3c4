"""JSON logs: one row per line, one list of rows, or the state of a Hugging Face trainer."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.fit.table_file import text_lines, text_of
from ablations.logs.log import HALF_WRITTEN, Log
from ablations.logs.row_values import one_each, one_each_of_json
from ablations.logs.rows import log_of_rows
from ablations.logs.trainer_states import HISTORY
from ablations.logs.trial_settings import of_one_setting

STEPS = ("step", "_step", "global_step", "training_iteration")
"""Names of the step; the last is Ray Tune's."""


def read_json_lines(path: Path, name: str) -> Log:
    """The log of a file with one JSON object per line.

    A last line that is not JSON is skipped with a note, since the trainer may still be writing it; any other such line
    raises FileError, and so does a trial of Ray Tune whose settings change.
    """
    notes: list[str] = []
    rows = of_one_setting(_rows_in_lines(path, notes), path)
    return log_of_rows(rows, name=name, place=str(path), steps=STEPS, notes=notes)


def _rows_in_lines(path: Path, notes: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lines = enumerate(text_lines(path), start=1)
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=one_each_of_json)
        except (ValueError, RecursionError) as error:
            if number > 1 and not any(other.strip() for _, other in lines):
                notes.append(HALF_WRITTEN)
                return
            raise Place(source=str(path), line=number).error(
                f"not JSON ({error})", "write one JSON object per line"
            ) from None
        if not isinstance(row, Mapping):
            raise Place(source=str(path), line=number).error(
                f"found {line.rstrip()[:40]!r}", "write one JSON object per line, with the step and metrics"
            )
        yield f"line {number}", _unwrapped(row)


def read_json(path: Path, name: str) -> Log:
    """The log of a file with a list of JSON objects, of a `trainer_state.json`, or of one object per line, as Ray Tune
    writes `result.json`; FileError for any other."""
    text = text_of(path)
    try:
        content = json.loads(text, object_pairs_hook=one_each_of_json)
    except (ValueError, RecursionError) as error:
        if not text.strip() or _is_whole(text.partition("\n")[0]):  # without a result yet, or with several
            return read_json_lines(path, name)
        raise Place(source=str(path)).error(
            f"not JSON ({error})", "for one object per line, the name must end in .jsonl"
        ) from None
    is_row = isinstance(content, Mapping) and HISTORY not in content and any(step in content for step in STEPS)
    if is_row and _is_whole(text.partition("\n")[0]):
        return read_json_lines(path, name)  # one result so far
    found = content.get(HISTORY) if isinstance(content, Mapping) else content
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        raise Place(source=str(path)).error("no list of rows", f"write a list of objects, or one under {HISTORY!r}")
    rows = ((f"row {number}", row) for number, row in enumerate(found, start=1))
    return log_of_rows(rows, name=name, place=str(path), steps=STEPS)


def _is_whole(line: str) -> bool:
    """True if a line is a JSON object by itself."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unwrapped(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of verl's logger of files, {"step": 1, "data": {...}}, with its data beside the step."""
    if row.keys() == {"step", "data"} and isinstance(row["data"], Mapping):
        return one_each([("step", row["step"]), *row["data"].items()])
    return row
