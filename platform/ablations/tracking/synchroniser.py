"""MLflow, made from the run folders: one experiment a sweep, one parent run a variant, one child run a seed.

The run folder is the truth, so a tracking server may be down, slow or full: a synchroniser pushes what is missing,
batch by batch, and says what is left. Nothing is pushed twice: with every batch MLflow gets the number of rows that it
has (metric `sync/rows`), and is asked for it before the next push, whatever became of the process in between.
`sync.json` (`ablations.tracking.ledger`) keeps MLflow's own ids; when it is lost, or of another server, they are
found again by tag. A later fit of a variant has a greater step (metric `sync/fits`), so that MLflow shows it and keeps
the earlier.

This is the only file that knows MLflow. It is imported inside functions: the command line must start quickly.
"""

import json
import math
import os
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout

from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.report.curves import variant_figure
from ablations.tracking.batches import NUM_ROWS_METRIC, ended_ms, flatten, row_batches, started_ms
from ablations.tracking.ledger import (
    UNKNOWN,
    SyncedRun,
    SyncedVariant,
    compared_runs,
    default_tracking_uri,
    fingerprint,
    fit_basis,
    num_rows,
    read_ledger,
    written_state,
)
from ablations.verdict.results import Results, read_results
from scalerl.run.run_folder import RunFolder

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

MAX_BATCH_METRICS = 1000
"""MLflow refuses more metrics in one request."""
MAX_BATCH_PARAMS = 100
"""MLflow refuses more parameters in one request."""
NUM_FITS_METRIC = "sync/fits"
RUN_TAG = "ablations.run_id"
VARIANT_TAG = "ablations.variant"
OVERRIDES_TAG = "ablations.overrides"
VERDICT_TAG = "ablations.verdict"
FIT_TAG = "ablations.fit"
"""`fit_basis` of the fit that MLflow shows."""
PARENT_TAG = "mlflow.parentRunId"
MLFLOW_STATES: dict[str, str] = {State.DONE: "FINISHED", State.FAILED: "FAILED", State.CANCELLED: "KILLED"}
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
    outcome: Literal["pushed", "silent", "busy"] = "pushed"
    """Whether the push went to its end, the server could not be used, or another process is pushing."""

    def __str__(self) -> str:
        because = f", because {self.reason}" if self.reason else ""
        return f"MLflow at {self.tracking_uri}: pushed {self.rows_pushed} rows, {self.rows_left} left{because}"


def push_sweep(sweep: StartedSweep, tracking_uri: str | None = None) -> SyncReport:
    """Push everything of a sweep that MLflow has not, by default into `mlflow.db` of the home folder.

    Whatever is wrong with the server is said in the report, never raised.
    """
    uri = tracking_uri or default_tracking_uri(sweep.home)
    try:
        with FileLock(sweep.folder / "sync.lock", timeout=0):
            return Synchroniser(sweep, uri).push()
    except Timeout:
        left = read_ledger(sweep).of(uri).num_left(sweep)
        busy = "another process is pushing them"
        return SyncReport(tracking_uri=uri, rows_pushed=0, rows_left=left, reason=busy, outcome="busy")


class Synchroniser:
    """Pushes one sweep to one server; whoever makes one holds the sweep's lock."""

    def __init__(self, sweep: StartedSweep, tracking_uri: str) -> None:
        self.sweep, self.tracking_uri = sweep, tracking_uri
        self.ledger = read_ledger(sweep).of(tracking_uri)
        self.rows_pushed = 0
        self.problems: list[str] = []

    def push(self) -> SyncReport:
        """Rows and states of every run, then the fits of variants that have ended; ends where the server fails."""
        os.environ.update({name: os.environ.get(name, value) for name, value in CLIENT_SETTINGS.items()})
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        outcome = "pushed"
        try:
            self._push_all()
        except (MlflowException, SQLAlchemyError, OSError) as error:
            self.problems.append(short_reason(error))
            outcome = "silent"
        return SyncReport(
            tracking_uri=self.tracking_uri,
            rows_pushed=self.rows_pushed,
            rows_left=self.ledger.num_left(self.sweep),
            reason="; ".join(self.problems),
            outcome=outcome,
        )

    def _push_all(self) -> None:
        self.client, self.experiment_id = self._open()
        for variant in self.sweep.plan.variants:
            parent = self._parent(variant)
            for run in variant.runs:
                if num_rows(self.sweep.run(run.id)):
                    self._push_run(run, self._child(variant, run, parent.mlflow_id))
        self._push_fits()

    def _open(self) -> tuple["MlflowClient", str]:
        """The client and the sweep's experiment, made if it is not there."""
        from mlflow import MlflowClient

        is_default = self.tracking_uri == default_tracking_uri(self.sweep.home)
        artifacts = (self.sweep.home.path.absolute() / "mlartifacts").as_uri() if is_default else None
        # Processes that make the tables of a fresh SQLite store at the same time crash.
        with FileLock(self.sweep.home.path / "mlflow.lock"):
            client = MlflowClient(self.tracking_uri)
            experiment = client.get_experiment_by_name(self.sweep.plan.sweep)
            if experiment is not None:
                return client, experiment.experiment_id
            tags = {"mlflow.note.content": self.sweep.plan.doc, "mlflow.experimentKind": "custom_model_development"}
            return client, client.create_experiment(self.sweep.plan.sweep, artifact_location=artifacts, tags=tags)

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
            folder, tags, name = self.sweep.run(run.id), {RUN_TAG: run.id}, f"{variant.name} seed {run.seed}"
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
        from mlflow.entities import Metric

        folder = self.sweep.run(run.id)
        if synced.num_rows < num_rows(folder):
            # A process killed after a batch, before the ledger was written, has pushed more than the ledger knows.
            pushed = self.client.get_run(synced.mlflow_id).data.metrics.get(NUM_ROWS_METRIC, 0)
            synced = replace(synced, num_rows=int(pushed))
            batches = row_batches(folder, synced.num_rows, max_points=MAX_BATCH_METRICS, problems=self.problems)
            for count, points in batches:
                metrics = [Metric(point.name, point.value, point.timestamp_ms, point.step) for point in points]
                self.client.log_batch(synced.mlflow_id, metrics)
                self.rows_pushed += count - synced.num_rows
                synced = replace(synced, num_rows=count)
                self.ledger.note_run(run.id, synced)
        state = written_state(folder)
        if synced.state != state:
            self._set_state(synced.mlflow_id, state, ended_ms([folder]))
        self.ledger.note_run(run.id, replace(synced, state=state))

    def _push_fits(self) -> None:
        # Rows that are written while they are fitted make the next push fit again.
        lacking = [
            (variant, fit_basis(self.sweep, variant))
            for variant in self.sweep.plan.variants
            if self.ledger.lacks_fit(self.sweep, variant)
        ]
        if lacking:
            results = read_results(self.sweep)
            for variant, basis in lacking:
                self._push_fit(results, variant, basis)

    def _push_fit(self, results: Results, variant: PlannedVariant, basis: str) -> None:
        """The fit as metrics of the variant's run, its verdict as a tag, its figure as an artifact."""
        parent = self.ledger.variants[variant.name]
        ended = ended_ms(compared_runs(self.sweep, variant))
        self._log_fit(parent.mlflow_id, results, variant.name, basis, ended)
        page = variant_figure(results, variant.name).to_html(include_plotlyjs=True)
        self.client.log_text(parent.mlflow_id, page, "curve.html")
        is_done = all(
            run.id in results.stopped or written_state(self.sweep.run(run.id)) == State.DONE for run in variant.runs
        )
        self._set_state(parent.mlflow_id, State.DONE if is_done else State.FAILED, ended)
        self.ledger.note_variant(variant.name, replace(parent, fit=basis))

    def _log_fit(self, mlflow_id: str, results: Results, name: str, basis: str, ended: int) -> None:
        """The numbers and the verdict, unless MLflow shows them already; NaN for what only an earlier fit gave."""
        from mlflow.entities import Metric, RunTag

        shown = self.client.get_run(mlflow_id).data
        if shown.tags.get(FIT_TAG) == basis:
            return
        number = int(shown.metrics.get(NUM_FITS_METRIC, 0)) + 1
        numbers = dict.fromkeys(shown.metrics, math.nan) | results.fit_numbers(name) | {NUM_FITS_METRIC: number}
        metrics = [Metric(metric, value, ended, number) for metric, value in numbers.items()]
        tags = [RunTag(VERDICT_TAG, results.verdict(name)), RunTag(FIT_TAG, basis)]
        self.client.log_batch(mlflow_id, metrics, tags=tags)

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
        return [self.sweep.run(run.id) for run in variant.runs]


def short_reason(error: Exception) -> str:
    """An error on one line: MLflow names the request first and what went wrong last."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= 300 else f'{text[:100]} ... {text[-200:]}'}"
