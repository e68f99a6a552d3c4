"""MLflow, made from the run folders: one experiment a sweep, one parent run a variant, one child run a seed.

The run folder is the truth, so a tracking server may be down, slow or full: a synchroniser pushes what is missing,
batch by batch, and says what is left. Nothing is pushed twice: with every batch MLflow gets the number of rows that it
has (metric `sync/rows`), and is asked for it before the next push, whatever became of the process in between.
`sync.json` (`ablations.ledger`) keeps MLflow's own ids; when it is lost they are found again by tag.

This is the only file that knows MLflow. It is imported inside functions: the command line must start quickly.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ablations.figures import variant_figure
from ablations.home import Home
from ablations.ledger import (
    UNKNOWN,
    Ledger,
    SyncedRun,
    SyncedVariant,
    compared_runs,
    fingerprint,
    ledger_path,
    num_rows,
    run_state,
)
from ablations.plan import Plan, PlannedRun, PlannedVariant
from ablations.results import Results, read_results
from ablations.scalars import row_scalars
from scalerl.metrics import read_rows
from scalerl.run_folder import RunFolder

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run

MAX_BATCH_METRICS = 1000
"""MLflow refuses more metrics in one request."""
MAX_BATCH_PARAMS = 100
"""MLflow refuses more parameters in one request."""
NUM_ROWS_METRIC = "sync/rows"
RUN_TAG = "ablations.run_id"
VARIANT_TAG = "ablations.variant"
OVERRIDES_TAG = "ablations.overrides"
VERDICT_TAG = "ablations.verdict"
PARENT_TAG = "mlflow.parentRunId"
MLFLOW_STATES = {"done": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
CLIENT_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""Left to itself an MLflow client waits four minutes for a dead server and reports its use over the internet."""


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """`SyncReport(tracking_uri="http://mlflow:5000", rows_pushed=120, rows_left=40, reason="... timed out")`."""

    tracking_uri: str
    rows_pushed: int
    rows_left: int
    """Rows of the run logs that MLflow has not."""
    reason: str = ""
    """Why something is left; empty when nothing is."""

    def __str__(self) -> str:
        because = f", because {self.reason}" if self.reason else ""
        return f"MLflow at {self.tracking_uri}: pushed {self.rows_pushed} rows, {self.rows_left} left{because}"


def sync(home: Path, sweep_name: str, tracking_uri: str | None = None) -> SyncReport:
    """Push everything of a sweep that MLflow has not, by default into `mlflow.db` of the home folder.

    Whatever is wrong with the server is said in the report, never raised.
    """
    place = Home(home)
    plan = Plan.read(place.sweep(sweep_name) / "plan.json")
    uri = tracking_uri or default_tracking_uri(place)
    try:
        with FileLock(place.sweep(sweep_name) / "sync.lock", timeout=0):
            return Synchroniser(place, plan, uri).push()
    except Timeout:
        left = Ledger.read(ledger_path(place, sweep_name)).num_left(place, plan)
        return SyncReport(tracking_uri=uri, rows_pushed=0, rows_left=left, reason="another process is pushing them")


def is_current(home: Path, sweep_name: str) -> bool:
    """Whether MLflow has all of a sweep, by what is known here: MLflow is neither asked nor loaded."""
    place = Home(home)
    plan = Plan.read(place.sweep(sweep_name) / "plan.json")
    return Ledger.read(ledger_path(place, sweep_name)).is_current(place, plan)


def default_tracking_uri(home: Home) -> str:
    """The SQLite store in the home folder."""
    return f"sqlite:///{home.path.absolute() / 'mlflow.db'}"


class Synchroniser:
    """Pushes one sweep to one server; whoever makes one holds the sweep's lock."""

    def __init__(self, home: Home, plan: Plan, tracking_uri: str) -> None:
        self.home, self.plan, self.tracking_uri = home, plan, tracking_uri
        self.ledger = Ledger.read(ledger_path(home, plan.sweep))
        if self.ledger.tracking_uri != tracking_uri:
            self.ledger = Ledger(path=self.ledger.path, tracking_uri=tracking_uri)
        self.rows_pushed = 0
        self.problems: list[str] = []

    def push(self) -> SyncReport:
        """Rows and states of every run, then the fits of variants that have ended; ends where the server fails."""
        os.environ.update({name: os.environ.get(name, value) for name, value in CLIENT_SETTINGS.items()})
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            self._push_all()
        except (MlflowException, SQLAlchemyError, OSError) as error:
            self.problems.append(short_reason(error))
        return SyncReport(
            tracking_uri=self.tracking_uri,
            rows_pushed=self.rows_pushed,
            rows_left=self.ledger.num_left(self.home, self.plan),
            reason="; ".join(self.problems),
        )

    def _push_all(self) -> None:
        self.client, self.experiment_id = self._open()
        for variant in self.plan.variants:
            parent = self._parent(variant)
            for run in variant.runs:
                if num_rows(self.home.run(run.id)):
                    self._push_run(run, self._child(variant, run, parent.mlflow_id))
        self._push_fits()

    def _open(self) -> tuple["MlflowClient", str]:
        """The client and the sweep's experiment, made if it is not there."""
        from mlflow import MlflowClient

        is_default = self.tracking_uri == default_tracking_uri(self.home)
        artifacts = (self.home.path.absolute() / "mlartifacts").as_uri() if is_default else None
        # Processes that make the tables of a fresh SQLite store at the same time crash.
        with FileLock(self.home.path / "mlflow.lock"):
            client = MlflowClient(self.tracking_uri)
            experiment = client.get_experiment_by_name(self.plan.sweep)
            if experiment is not None:
                return client, experiment.experiment_id
            tags = {"mlflow.note.content": self.plan.doc, "mlflow.experimentKind": "custom_model_development"}
            return client, client.create_experiment(self.plan.sweep, artifact_location=artifacts, tags=tags)

    def _parent(self, variant: PlannedVariant) -> SyncedVariant:
        """The variant's run in MLflow; with other overrides it is another, as MLflow's parameters cannot change."""
        overrides = fingerprint(variant.overrides)
        known = self.ledger.variants.get(variant.name)
        if known is None or known.overrides != overrides:
            tags = {VARIANT_TAG: variant.name, OVERRIDES_TAG: overrides}
            found = self._find(tags) or self._create(variant.name, tags, started_ms(self._folders(variant)))
            self._log_params(found, variant.overrides)
            known = SyncedVariant(mlflow_id=found.info.run_id, overrides=overrides)
            self.ledger.note_variant(variant.name, known)
        return known

    def _child(self, variant: PlannedVariant, run: PlannedRun, parent_id: str) -> SyncedRun:
        """The seed's run in MLflow, under its variant even where the sweep has given that another name."""
        known = self.ledger.runs.get(run.id)
        if known is None:
            folder, tags, name = self.home.run(run.id), {RUN_TAG: run.id}, f"{variant.name} seed {run.seed}"
            found = self._find(tags) or self._create(name, tags | {PARENT_TAG: parent_id}, started_ms([folder]))
            stored = json.loads((folder.path / "recipe.json").read_bytes())
            self._log_params(found, {"seed": run.seed, **stored["recipe"]})
            known = SyncedRun(
                mlflow_id=found.info.run_id, parent_id=found.data.tags[PARENT_TAG], num_rows=0, state=UNKNOWN
            )
        if known.parent_id != parent_id:
            self.client.set_tag(known.mlflow_id, PARENT_TAG, parent_id)
        known = replace(known, parent_id=parent_id)
        self.ledger.note_run(run.id, known)
        return known

    def _push_run(self, run: PlannedRun, synced: SyncedRun) -> None:
        """The rows and the state of one run."""
        folder = self.home.run(run.id)
        if synced.num_rows < num_rows(folder):
            # A process killed after a batch, before the ledger was written, has pushed more than the ledger knows.
            pushed = self.client.get_run(synced.mlflow_id).data.metrics.get(NUM_ROWS_METRIC, 0)
            synced = replace(synced, num_rows=int(pushed))
            for count, metrics in batches(folder, synced.num_rows, self.problems):
                self.client.log_batch(synced.mlflow_id, metrics)
                self.rows_pushed += count - synced.num_rows
                synced = replace(synced, num_rows=count)
                self.ledger.note_run(run.id, synced)
        state = run_state(folder)
        if synced.state != state:
            self._set_state(synced.mlflow_id, state, ended_ms([folder]))
        self.ledger.note_run(run.id, replace(synced, state=state))

    def _push_fits(self) -> None:
        lacking = [variant for variant in self.plan.variants if self.ledger.lacks_fit(self.home, self.plan, variant)]
        if lacking:
            results = read_results(self.home, self.plan)
            for variant in lacking:
                self._push_fit(results, variant)

    def _push_fit(self, results: Results, variant: PlannedVariant) -> None:
        """The fit as metrics of the variant's run, its verdict as a tag, its figure as an artifact."""
        from mlflow.entities import Metric

        parent, compared = self.ledger.variants[variant.name], compared_runs(self.home, self.plan, variant)
        # At this step and time the same fit pushed again is the same metric to MLflow, not a second one.
        count, ended = sum(map(num_rows, compared)), ended_ms(compared)
        self.client.log_batch(
            parent.mlflow_id,
            [Metric(name, value, ended, count) for name, value in results.fit_numbers(variant.name).items()],
        )
        self.client.set_tag(parent.mlflow_id, VERDICT_TAG, results.verdict(variant.name))
        page = variant_figure(results, variant.name).to_html(include_plotlyjs=True)
        self.client.log_text(parent.mlflow_id, page, "curve.html")
        states = {run_state(folder) for folder in self._folders(variant)}
        self._set_state(parent.mlflow_id, "done" if states == {"done"} else "failed", ended)
        self.ledger.note_variant(variant.name, replace(parent, num_fitted_rows=count))

    def _find(self, tags: dict[str, str]) -> "Run | None":
        """The run of this experiment with these tags."""
        asked = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
        found = self.client.search_runs([self.experiment_id], asked, max_results=1)
        return found[0] if found else None

    def _create(self, name: str, tags: dict[str, str], started: int | None) -> "Run":
        return self.client.create_run(self.experiment_id, start_time=started, tags=tags, run_name=name)

    def _log_params(self, run: "Run", settings: dict[str, Any]) -> None:
        """Settings as parameters; to log the same ones again changes nothing."""
        from mlflow.entities import Param

        rest = iter([Param(name, str(value)) for name, value in flatten(settings).items()])
        while chunk := list(islice(rest, MAX_BATCH_PARAMS)):
            self.client.log_batch(run.info.run_id, params=chunk)

    def _set_state(self, mlflow_id: str, state: str, ended: int) -> None:
        if state in MLFLOW_STATES:
            self.client.set_terminated(mlflow_id, MLFLOW_STATES[state], ended)
        else:
            self.client.update_run(mlflow_id, "RUNNING")

    def _folders(self, variant: PlannedVariant) -> list[RunFolder]:
        return [self.home.run(run.id) for run in variant.runs]


def started_ms(folders: list[RunFolder]) -> int | None:
    """When the first of the runs was planned, in MLflow's milliseconds; None when none was."""
    recipes = [folder.path / "recipe.json" for folder in folders]
    return min((int(1000 * recipe.stat().st_mtime) for recipe in recipes if recipe.exists()), default=None)


def ended_ms(folders: list[RunFolder]) -> int:
    """When the last of the runs gave a sign of life."""
    return int(1000 * max(folder.read_status().get("heartbeat", 0.0) for folder in folders))


def short_reason(error: Exception) -> str:
    """An error on one line: MLflow names the request first and what went wrong last."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= 300 else f'{text[:100]} ... {text[-200:]}'}"


def batches(folder: RunFolder, num_pushed: int, problems: list[str]) -> Iterator[tuple[int, list["Metric"]]]:
    """What follows the first `num_pushed` rows of a run log, as metrics of whole rows in batches that MLflow takes.

    Each batch comes with the number of rows that MLflow has after it. A line that cannot be read ends the run log; the
    reason is added to `problems`.
    """
    count, batch = num_pushed, []
    started = (folder.path / "recipe.json").stat().st_mtime
    rows = islice(read_rows(folder.metrics), num_pushed, None)
    try:
        for number, row in enumerate(rows, start=num_pushed + 1):
            metrics = row_metrics(row, number, started)
            if len(batch) + len(metrics) > MAX_BATCH_METRICS:
                yield count, batch
                batch = []
            batch += metrics
            count = number
    except ValueError as error:
        problems.append(str(error))
    if batch:
        yield count, batch


def row_metrics(row: dict[str, Any], number: int, started: float) -> list["Metric"]:
    """Row `number` of a run as metrics such as `train/loss`, at its step and `wall_s` seconds after `started`."""
    from mlflow.entities import Metric

    timestamp = int(1000 * (started + row["wall_s"]))
    scalars = {f"{row['kind']}/{name}": value for name, value in row_scalars(row).items()}
    metrics = [Metric(name, value, timestamp, row["step"]) for name, value in scalars.items()]
    return [*metrics, Metric(NUM_ROWS_METRIC, number, timestamp, number)]


def flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names: {"loss": {"type": "dapo"}} gives {"loss.type": "dapo"}."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat
