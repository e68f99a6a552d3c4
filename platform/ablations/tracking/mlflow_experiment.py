"""A synchroniser's requests to MLflow's client: one experiment, found or created, and its runs.

MLflow is imported inside functions, since the command line must start quickly. MLflow's errors are passed on;
`failures_of_mlflow` are those of a server that is down, slow, full or old.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ablations.home.home import Home
from ablations.home.notes import Notes
from ablations.home.state import State
from ablations.tracking.descriptions import (
    NOTES_TAG,
    TAGS_TAG,
    DescribedDataset,
    Description,
    as_markdown,
    tags_of_notes,
)
from ablations.tracking.mlflow_metrics import MetricPoint
from ablations.tracking.runs_page import VIEW, VIEW_TAG
from ablations.tracking.sqlite_points import MAX_BATCH_POINTS, SqlitePoints
from ablations.tracking.sync_note import default_tracking_uri
from scalerl.credentials import without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

MAX_BATCH_METRICS = 1000
"""MLflow's limit on the metrics in one request."""
MAX_BATCH_PARAMS = 100
"""MLflow's limit on the params or tags in one request."""
PAGE_OF_RUNS = 1000
PARENT_TAG = "mlflow.parentRunId"
MLFLOW_STATES: dict[str, str] = {
    State.DONE: "FINISHED",
    State.STOPPED: "FINISHED",
    State.FAILED: "FAILED",
    State.CANCELLED: "KILLED",
}
CLIENT_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""By default an MLflow client waits four minutes for a dead server and sends telemetry over the internet."""
OF_ONE_RUN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")
"""Error codes about one run, for example one deleted on MLflow's page, and not about the server."""


def set_up_client() -> None:
    """Apply the client settings; called first by every process that uses MLflow's client."""
    os.environ.update({name: os.environ.get(name, value) for name, value in CLIENT_SETTINGS.items()})


def failures_of_mlflow() -> tuple[type[Exception], ...]:
    """Errors of a server or store that cannot be used."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, OSError


def runs_of_experiment(client: "MlflowClient", experiment_id: str, **options: Any) -> "Iterator[Run]":
    """The runs of an experiment, page by page; `options` are passed to MLflow's `search_runs`."""
    token = None
    while True:
        page = client.search_runs([experiment_id], page_token=token, **options)
        yield from page
        token = page.token
        if not token:
            return


class MlflowExperiment:
    """The experiment of a sweep on one server, created if missing."""

    def __init__(self, tracking_uri: str, home: Home, *, name: str, doc: str) -> None:
        from mlflow import MlflowClient

        is_default = tracking_uri == default_tracking_uri(home)
        folder = home.path.absolute() / "mlartifacts"
        # Processes that create the tables of a fresh SQLite store at the same time crash.
        with FileLock(home.path / "mlflow.lock"):
            self.client = MlflowClient(tracking_uri)
            found: Experiment | None = self.client.get_experiment_by_name(name)
            if found is None:
                tags = {"mlflow.note.content": as_markdown(doc), "mlflow.experimentKind": "custom_model_development"}
                place = folder.as_uri() if is_default else None
                tags[VIEW_TAG] = json.dumps(VIEW)
                self.id = self.client.create_experiment(name, artifact_location=place, tags=tags)
            else:
                self.id = found.experiment_id
        self.tags: Mapping[str, str] = found.tags if found else {}
        """The experiment's tags as they were when it was found."""
        self.numbers = SqlitePoints.of(tracking_uri)
        """The store's tables of numbers; None for a server and for tables that are not known."""
        self.files_elsewhere = ""
        """The store's file location if the home folder was moved or copied since, else empty; no file goes there."""
        if found is not None and is_default and not str(found.artifact_location).startswith(folder.as_uri()):
            self.files_elsewhere = str(found.artifact_location)

    def annotate(self, notes: Notes) -> None:
        """Give the experiment the notes and tags of its sweep."""
        for name, text in ({NOTES_TAG: "", TAGS_TAG: ""} | tags_of_notes(notes)).items():
            if self.tags.get(name, "") != text:
                self.client.set_experiment_tag(self.id, name, text)

    def runs(self) -> "list[Run]":
        """All runs of the experiment, in few requests."""
        return list(runs_of_experiment(self.client, self.id, max_results=PAGE_OF_RUNS))

    def create_run(self, name: str, tags: Mapping[str, str], started_ms: int | None) -> "Run":
        """Create a run; `started_ms` are milliseconds since 1970, None for now."""
        return self.client.create_run(self.id, start_time=started_ms, tags=dict(tags), run_name=name)

    def describe(self, run: "Run", description: Description) -> None:
        """Add missing params, since MLflow does not let a param change, and then update the tags."""
        from mlflow.entities import Param, RunTag

        told = run.data.tags
        rest = [Param(key, value) for key, value in description.params.items() if key not in run.data.params]
        while len(rest) > MAX_BATCH_PARAMS:
            self.client.log_batch(run.info.run_id, params=rest[:MAX_BATCH_PARAMS])
            rest = rest[MAX_BATCH_PARAMS:]
        tags = [RunTag(key, value) for key, value in description.tags.items() if told.get(key) != value]
        self.client.log_batch(run.info.run_id, params=rest, tags=tags)

    @property
    def max_points(self) -> int:
        """Maximum number of numbers in one batch without tags."""
        return MAX_BATCH_METRICS if self.numbers is None else MAX_BATCH_POINTS

    def log_points(self, mlflow_id: str, points: Sequence[MetricPoint], tags: Mapping[str, str] | None = None) -> None:
        """Log at most `max_points` numbers in one transaction; repeated numbers change nothing."""
        from mlflow.entities import Metric, RunTag

        if not tags and self.numbers is not None and self.numbers.log(mlflow_id, points):
            return
        metrics = [Metric(point.name, point.value, point.timestamp_ms, point.step) for point in points]
        told = [RunTag(*tag) for tag in (tags or {}).items()]
        for begin in range(0, len(metrics), MAX_BATCH_METRICS):
            self.client.log_batch(mlflow_id, metrics[begin : begin + MAX_BATCH_METRICS], tags=told)

    def log_datasets(self, mlflow_id: str, datasets: Iterable[DescribedDataset]) -> None:
        """Record the data of a run as its inputs."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        inputs = [
            DatasetInput(
                Dataset(name=one.name, digest=one.digest, source_type="scalerl task", source=one.source),
                tags=[InputTag("mlflow.data.context", one.context)],
            )
            for one in datasets
        ]
        self.client.log_inputs(mlflow_id, inputs)

    def log_file(self, mlflow_id: str, path: Path) -> None:
        """Log a file under its own name."""
        if not self.files_elsewhere:
            self.client.log_artifact(mlflow_id, str(path))

    def log_bytes(self, mlflow_id: str, content: bytes, name: str) -> None:
        """Log a file from memory."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            self.log_file(mlflow_id, path)

    def set_state(self, run: "Run", state: str, ended_ms: int) -> None:
        """Set the state of a run if MLflow has a different one; an unfinished run counts as running."""
        status = MLFLOW_STATES.get(state, "RUNNING")
        if run.info.status != status and state in MLFLOW_STATES:
            self.client.set_terminated(run.info.run_id, status, ended_ms)
        elif run.info.status != status:
            self.client.update_run(run.info.run_id, status)


def short_reason(error: Exception) -> str:
    """An error on one line: MLflow names the request first and the cause last."""
    text = without_secrets(" ".join(str(error).split()))
    if "ConnectionError" in text and (why := re.search(r"\[Errno -?\d+\] ([\w ]+)", text)):
        return f"no MLflow server answers ({why[1].strip().lower()})"
    return f"{type(error).__name__}: {text if len(text) <= 300 else f'{text[:100]} ... {text[-200:]}'}"
