"""A run folder in the form a tracking server takes: flat names, single numbers in batches, milliseconds."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ablations.tracking.scalars import row_scalars
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder

NUM_ROWS_METRIC = "sync/rows"
"""Comes with every row: how many rows the server has."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number: `Point(name="train/loss", value=-0.012, timestamp_ms=1763636574200, step=120)`."""

    name: str
    value: float
    timestamp_ms: int
    step: int


def row_batches(
    folder: RunFolder, num_pushed: int, *, max_points: int, problems: list[str]
) -> Iterator[tuple[int, list[Point]]]:
    """What follows the first `num_pushed` rows of a run log, as points of whole rows in batches.

    Each batch comes with the number of rows that the server has after it. A line that cannot be read ends the run log;
    the reason is added to `problems`.
    """
    count, batch = num_pushed, []
    started = (folder.path / "recipe.json").stat().st_mtime
    rows = islice(read_rows(folder.metrics), num_pushed, None)
    try:
        for number, row in enumerate(rows, start=num_pushed + 1):
            points = row_points(row, number, started)
            if len(batch) + len(points) > max_points:
                yield count, batch
                batch = []
            batch += points
            count = number
    except ValueError as error:
        problems.append(str(error))
    if batch:
        yield count, batch


def row_points(row: dict[str, Any], number: int, started: float) -> list[Point]:
    """Row `number` of a run as points such as `train/loss`, at its step and `wall_s` seconds after `started`.

    Rows of one task of a mix and downstream rows go by its name as well: `downstream/aime/pass_at_1`.
    """
    at = int(1000 * (started + row["wall_s"]))
    of_one = row["kind"] == "downstream" or "share" in row
    group = f"{row['kind']}/{row['task']}" if of_one else row["kind"]
    points = [
        Point(name=f"{group}/{name}", value=value, timestamp_ms=at, step=row["step"])
        for name, value in row_scalars(row).items()
    ]
    return [*points, Point(name=NUM_ROWS_METRIC, value=number, timestamp_ms=at, step=number)]


def flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names: {"loss": {"type": "dapo"}} gives {"loss.type": "dapo"}."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat


def started_ms(folders: list[RunFolder]) -> int | None:
    """When the first of the runs was planned, in milliseconds since 1970; None when none was."""
    recipes = [folder.path / "recipe.json" for folder in folders]
    return min((int(1000 * recipe.stat().st_mtime) for recipe in recipes if recipe.exists()), default=None)


def ended_ms(folders: list[RunFolder]) -> int:
    """When the last of the runs gave a sign of life."""
    return int(1000 * max(folder.read_status().heartbeat for folder in folders))
