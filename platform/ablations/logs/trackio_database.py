"""Databases of Trackio: one SQLite file per project, with all its runs."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from ablations.errors import Place
from ablations.logs.log import Log
from ablations.logs.row_values import flat, one_each, one_each_of_json
from ablations.logs.rows import RowColumns, log_of_columns


def read_trackio(path: Path) -> list[Log]:
    """The logs of all runs of a project, in the order of their first row; FileError for any other database."""
    place = Place(source=str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
            if not {"run_name", "step", "metrics"} <= names:
                raise place.error("not a Trackio database", "name a file <project>.db of Trackio's folder")
            run = "run_id" if "run_id" in names else "run_name"
            rows: dict[str, RowColumns] = {}
            called: dict[str, str] = {}
            for run_id, name, step, metrics in database.execute(
                f"SELECT {run}, run_name, step, metrics FROM metrics ORDER BY id"
            ):
                called[run_id] = name
                of_run = rows.setdefault(run_id, RowColumns(f"{path}, run {name!r}"))
                of_run.add(
                    f"row {of_run.num_rows + 1}",
                    one_each([("step", step), *json.loads(metrics, object_pairs_hook=one_each_of_json).items()]),
                )
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            configs = dict(database.execute(f"SELECT {run}, config FROM configs")) if "configs" in tables else {}
    except sqlite3.Error as error:
        raise place.error(f"cannot be read ({error})", "name a file <project>.db of Trackio's folder") from None
    if not rows:
        raise place.error("no run has logged anything yet", "let the trainer log at least one step first")
    return [
        log_of_columns(
            of_run,
            name=called[run_id],
            steps=("step",),
            config={key: str(value) for key, value in flat(json.loads(configs.get(run_id, "{}")))},
        )
        for run_id, of_run in rows.items()
    ]
