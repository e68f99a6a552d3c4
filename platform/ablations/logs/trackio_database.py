"""Databases of Trackio: one SQLite file per project, with all its runs."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from ablations.errors import Place
from ablations.logs.log import Log
from ablations.logs.rows import flat, log_of_rows


def read_trackio(path: Path) -> list[Log]:
    """The logs of all runs of a project, in the order of their first row; FileError for any other database."""
    place = Place(source=str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
            if not {"run_name", "step", "metrics"} <= names:
                raise place.error("not a Trackio database", "name a file <project>.db of Trackio's folder")
            run = "run_id" if "run_id" in names else "run_name"
            found = database.execute(f"SELECT {run}, run_name, step, metrics FROM metrics ORDER BY id").fetchall()
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            configs = dict(database.execute(f"SELECT {run}, config FROM configs")) if "configs" in tables else {}
    except sqlite3.Error as error:
        raise place.error(f"cannot be read ({error})", "name a file <project>.db of Trackio's folder") from None
    if not found:
        raise place.error("no run has logged a row", "the trainer must have logged a step")
    rows: dict[str, list[tuple[str, dict[str, object]]]] = {}
    called: dict[str, str] = {}
    for run_id, name, step, metrics in found:
        called[run_id] = name
        of_run = rows.setdefault(run_id, [])
        of_run.append((f"row {len(of_run) + 1}", {"step": step, **json.loads(metrics)}))
    return [
        log_of_rows(
            of_run,
            name=called[run_id],
            place=f"{path}, run {called[run_id]!r}",
            steps=("step",),
            config={key: str(value) for key, value in flat(json.loads(configs.get(run_id, "{}")))},
        )
        for run_id, of_run in rows.items()
    ]
