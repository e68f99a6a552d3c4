"""A run folder in the form of a tracking server: flat names, single numbers in batches, milliseconds.

Series are thinned for MLflow, whose page draws at most 320 points of each. All evaluations are sent. Of the training
steps, the first 64 are sent, and 32 for each doubling after them (`is_sent`): 295 of 10,000 steps. The run log has
every step.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ablations.tracking.descriptions import metric_name
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

NUM_ROWS_METRIC = "system/rows"
"""Name of the metric in every batch with the number of run-log rows processed so far. MLflow shows it apart."""
STEPS_SENT_ALL = 64
"""All training steps before this one are sent."""


class MetricPoint(NamedTuple):
    """One number: `MetricPoint(name="train/loss", value=-0.012, timestamp_ms=1763636574200, step=120)`."""

    name: str
    value: float
    timestamp_ms: int
    step: int


def row_batches(
    folder: RunFolder, num_pushed: int, *, started_ms: int, max_points: int, problems: list[str]
) -> Iterator[tuple[int, list[MetricPoint]]]:
    """The rows of a run log after the first `num_pushed`, as points of whole rows in batches.

    Each batch comes with the number of rows on the server after this batch, which is also its last point. An unreadable
    line ends the run log; the reason is added to `problems`.
    """
    count, batch, at = num_pushed, [], started_ms
    marked = num_pushed
    rows = islice(read_rows(folder.metrics), num_pushed, None)
    try:
        for number, row in enumerate(rows, start=num_pushed + 1):
            points = row_points(row, started_ms) if is_sent(row) else []
            if len(batch) + len(points) >= max_points:
                yield count, [*batch, _mark(count, at)]
                batch, marked = [], count
            batch += points
            count, at = number, _time_ms(row, started_ms)
    except ValueError as error:
        problems.append(str(error))
    if count > marked:
        yield count, [*batch, _mark(count, at)]


def is_sent(row: dict[str, Any]) -> bool:
    """True if a row is sent to MLflow: every row except those of surplus training steps.

    Of the steps in [64 * 2^k, 64 * 2^(k + 1)) every 2^(k + 1)-th one is sent, 32 in all; before 64, all are.
    """
    return row["kind"] != "train" or row["step"] % (1 << (row["step"] // STEPS_SENT_ALL).bit_length()) == 0


def row_points(row: dict[str, Any], started_ms: int) -> list[MetricPoint]:
    """A row of a run as points such as `train/loss`, at its step and `wall_s` seconds after `started_ms`.

    Points of one task of a mix and of downstream rows also have the task's name: `downstream/aime/pass_at_1`.
    """
    at, step = _time_ms(row, started_ms), row["step"]
    of_one = row["kind"] == "downstream" or "share" in row
    group = f"{row['kind']}/{row['task']}" if of_one else row["kind"]
    return [MetricPoint(metric_name(f"{group}/{name}"), value, at, step) for name, value in row_scalars(row).items()]


def _time_ms(row: dict[str, Any], started_ms: int) -> int:
    return started_ms + int(1000 * row.get("wall_s", 0.0))  # the log of another trainer may have no times


def _mark(count: int, at: int) -> MetricPoint:
    return MetricPoint(NUM_ROWS_METRIC, count, at, count)


NOT_SCALARS = frozenset({"step", "wall_s"})
"""Fields that give the position of a row."""


def row_scalars(row: dict[str, Any]) -> dict[str, float]:
    """The numbers of one row: {"loss": -0.012, "skipped": 0.0, "staleness_mean": 2.4, "staleness_max": 8.0, ...}.

    A histogram gives its mean and its largest value; a mapping of names to numbers gives each number
    (`outcomes_right`); anything else that is not a number is left out.
    """
    scalars: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, int | float):
            if name not in NOT_SCALARS:
                scalars[name] = float(value)
        elif isinstance(value, dict) and not all(map(_is_number, value)):
            scalars |= {f"{name}_{inner}": number for inner, number in row_scalars(value).items()}
        elif isinstance(value, dict) and value:
            counts = {float(key): count for key, count in value.items()}
            scalars[f"{name}_mean"] = sum(key * count for key, count in counts.items()) / sum(counts.values())
            scalars[f"{name}_max"] = max(counts)
    return scalars


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
