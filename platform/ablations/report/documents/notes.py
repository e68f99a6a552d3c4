"""What people have written about a sweep, as a table and as lines."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ablations.home.notes import Notes, notes_by_name
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.blocks import Cell, Kind, Table, table_of_rows

MOST_NOTE_LINES = 6
"""Limit on the lines of notes in `platform status`."""
KINDS_OF_NOTES: dict[str, Kind] = {
    "about": "name",
    "tags": "words",
    "no.": "number",
    "written": "name",
    "note": "prose",
}


def notes_table(sweep: StartedSweep) -> Table | None:
    """A row for each note on a sweep, its variants and its runs; None if there are none."""
    rows = [row for name, notes in notes_by_name(sweep) for row in note_rows(name, notes)]
    return notes_as_table(rows) if rows else None


def notes_as_table(rows: Sequence[dict[str, Cell | str]]) -> Table:
    """Rows of `note_rows` as one table."""
    return table_of_rows(rows, name="notes", kinds=KINDS_OF_NOTES)


def note_rows(name: str, notes: Notes) -> list[dict[str, Cell | str]]:
    """A row for each note, numbered if there are several; the tags are in the first row."""
    blank: dict[str, Cell | str] = {"about": name, "tags": ", ".join(notes.tags), "no.": "", "written": "", "note": ""}
    rows = [blank] if notes and not notes.texts else []
    for number, one in enumerate(notes.texts, start=1):
        written = Cell(f"{datetime.fromtimestamp(one.at).astimezone():%Y-%m-%d %H:%M}", one.at)
        shown = str(number) if len(notes.texts) > 1 else ""
        rows.append(blank | {"no.": shown, "written": written, "note": one.text} | ({"tags": ""} if number > 1 else {}))
    return rows


def note_lines(sweep: StartedSweep) -> list[str]:
    """The notes in few lines, `loo-loss [keep]: repeat with FP32`; of many, where the others are."""
    lines = [note_line(name, notes) for name, notes in notes_by_name(sweep)]
    more = len(lines) - MOST_NOTE_LINES
    command = f"platform note {sweep.name}{sweep.home.end_of_command}"
    rest = [f"To see the notes on {more} more variants and runs, run `{command}`."]
    return lines if more <= 0 else [*lines[:MOST_NOTE_LINES], *rest]


def notes_json(sweep: StartedSweep) -> list[dict[str, Any]]:
    """The notes as plain data: `{"about": "loo-loss", "texts": [{"at": 1764167574.2, "text": "..."}], "tags": []}`."""
    return [{"about": name, **asdict(notes)} for name, notes in notes_by_name(sweep)]


def note_line(name: str, notes: Notes) -> str:
    """The notes and tags of one sweep, variant or run in a line."""
    tags = f" [{', '.join(notes.tags)}]" if notes.tags else ""
    return f"{name}{tags}{': ' if notes.texts else ''}{'; '.join(notes.text.splitlines())}"
