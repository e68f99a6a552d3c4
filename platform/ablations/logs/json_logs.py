"""Logs as JSON: one row per line, one list of rows, or the state of a Hugging Face trainer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.fit.table_file import text_of
from ablations.logs.log import HALF_WRITTEN, Log
from ablations.logs.rows import log_of_rows

STEPS = ("step", "_step", "global_step")
HISTORY = "log_history"
"""Key of the rows in a `trainer_state.json`."""


def read_json_lines(path: Path, name: str) -> Log:
    """The log of a file with one JSON object a line.

    A last line that is not JSON is skipped with a note, since the trainer may still be writing it; any other such line
    raises FileError.
    """
    lines = text_of(path).split("\n")
    rows, notes = [], ()
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == last and number:
                notes = (HALF_WRITTEN,)
                break
            raise Place(source=str(path), line=number + 1).error(
                f"not JSON ({error})", "write one JSON object per line"
            ) from None
        if not isinstance(row, Mapping):
            raise Place(source=str(path), line=number + 1).error(
                f"found {line[:40]!r}", "write one JSON object per line, with the step and metrics"
            )
        rows.append((f"line {number + 1}", _unwrapped(row)))
    return log_of_rows(rows, name=name, place=str(path), steps=STEPS, notes=notes)


def read_json(path: Path, name: str) -> Log:
    """The log of a file with a list of JSON objects, or of a `trainer_state.json`; FileError for any other."""
    try:
        content = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise Place(source=str(path)).error(
            f"not JSON ({error})", "for one object per line, the name must end in .jsonl"
        ) from None
    found = content.get(HISTORY) if isinstance(content, Mapping) else content
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        raise Place(source=str(path)).error("no list of rows", f"write a list of objects, or one under {HISTORY!r}")
    rows = [(f"row {number + 1}", row) for number, row in enumerate(found)]
    return log_of_rows(rows, name=name, place=str(path), steps=STEPS)


def _unwrapped(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of verl's logger of files, {"step": 1, "data": {...}}, with its data beside the step."""
    if row.keys() == {"step", "data"} and isinstance(row["data"], Mapping):
        return {"step": row["step"], **row["data"]}
    return row
