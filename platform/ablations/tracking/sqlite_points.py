"""Writes numbers straight into the tables of MLflow's SQLite store, many at once.

MLflow's client makes two objects of every number, checks it twice and looks up the latest of its name. Here a batch is
one transaction that leaves the same rows behind. A store with other tables, and a run that MLflow would refuse, are
left to the client.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ablations.files.database import sqlite_path
from ablations.tracking.mlflow_metrics import MetricPoint

if TYPE_CHECKING:
    from sqlalchemy import Engine

STORED = ("key", "value", "timestamp", "step", "is_nan", "run_uuid")
"""All columns of the tables `metrics` and `latest_metrics` of MLflow 3."""
MAX_BATCH_POINTS = 20_000
"""Maximum number of numbers in one transaction, since each transaction waits for the disk."""
StoredPoint = tuple[str, float, int, int, bool, str]
"""A row of `STORED`."""
STORE_WAIT_S = 60.0
"""Seconds to wait for another process that writes into the store."""
LARGEST = 1.7976931348623157e308
"""The number that MLflow stores for infinity."""
INTO = f"({', '.join(STORED)}) VALUES (?, ?, ?, ?, ?, ?)"
INSERT = f"INSERT OR IGNORE INTO metrics {INTO}"
INSERT_LATEST = (
    f"INSERT INTO latest_metrics {INTO} ON CONFLICT (key, run_uuid) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in STORED[1:5])} WHERE (excluded.step, excluded.timestamp, "
    "excluded.value) > (latest_metrics.step, latest_metrics.timestamp, latest_metrics.value)"
)
ACTIVE = "SELECT 1 FROM runs WHERE run_uuid = ? AND lifecycle_stage = 'active'"


class SqlitePoints:
    """The numbers of an SQLite store of MLflow: `SqlitePoints.of("sqlite:////home/ada/runs/mlflow.db")`."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @classmethod
    def of(cls, tracking_uri: str) -> "SqlitePoints | None":
        """The numbers of a store; None if it is not an SQLite store, or its tables are not the ones known here."""
        if sqlite_path(tracking_uri) is None:
            return None
        from sqlalchemy import create_engine, inspect

        engine = create_engine(tracking_uri, connect_args={"timeout": STORE_WAIT_S})
        tables = inspect(engine)
        if any(
            {one["name"] for one in tables.get_columns(name)} != {*STORED} for name in ("metrics", "latest_metrics")
        ):
            return None
        return cls(engine)

    def log(self, mlflow_id: str, points: Iterable[MetricPoint]) -> bool:
        """Log numbers in one transaction, without duplicates; False if MLflow has no such active run."""
        rows = sorted(_stored(mlflow_id, point) for point in points)  # in the order of the index, an eighth faster
        latest: dict[str, StoredPoint] = {}
        for row in rows:
            other = latest.get(row[0])
            if other is None or (row[3], row[2], row[1]) > (other[3], other[2], other[1]):
                latest[row[0]] = row
        with self._engine.begin() as store:
            if store.exec_driver_sql(ACTIVE, (mlflow_id,)).first() is None:
                return False
            if rows:
                store.exec_driver_sql(INSERT, rows)
                store.exec_driver_sql(INSERT_LATEST, list(latest.values()))
        return True


def _stored(mlflow_id: str, point: MetricPoint) -> StoredPoint:
    """A number as MLflow stores it: NaN as 0 with a mark, infinity as the largest number."""
    name, value, at, step = point
    if math.isfinite(value):
        return name, value, at, step, False, mlflow_id
    is_nan = math.isnan(value)
    return name, 0.0 if is_nan else math.copysign(LARGEST, value), at, step, is_nan, mlflow_id
