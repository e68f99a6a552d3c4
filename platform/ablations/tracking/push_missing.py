"""MLflow, filled from the run folders: one experiment per sweep, one parent run per variant, one child run per seed.

The run folder is authoritative, so a tracking server may be down, slow or full: a synchroniser pushes missing data
batch by batch and reports what is left. Nothing is pushed twice: every batch tells MLflow the number of rows it has
(metric `system/rows`), and the next push asks for that number first, even if the process died in between. `sync.json`
(`ablations.tracking.ledger`) keeps MLflow's own ids; if the file is lost, or belongs to another server, the ids are
found again by tag. A later fit of a variant has a greater step (metric `system/fits`), so that MLflow shows the newest
fit and keeps the earlier ones.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from ablations.findings.results import Results, read_results
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.report.page import report_page
from ablations.report.static import PAGE_IN, curves_picture, differences_picture
from ablations.terminal.progress_bar import Done
from ablations.tracking.descriptions import datasets_of, fingerprint
from ablations.tracking.ledger import (
    UNKNOWN_STATE,
    Ledger,
    SyncedRun,
    SyncedVariant,
    compared_runs,
    default_tracking_uri,
    describe,
    fit_bases,
    num_rows,
    read_ledger,
    stored_recipe,
    written_state,
)
from ablations.tracking.mean_curve import mean_curve
from ablations.tracking.mlflow_experiment import (
    MAX_BATCH_METRICS,
    OF_ONE_RUN,
    PARENT_TAG,
    MlflowExperiment,
    failures_of_mlflow,
    set_up_client,
    short_reason,
)
from ablations.tracking.mlflow_metrics import NUM_ROWS_METRIC, MetricPoint, row_batches
from ablations.tracking.runs_page import MEAN_COMPUTE, MEAN_PASS_RATE
from ablations.tracking.sortable import numbers_of_run, numbers_of_variant, verdicts_of_run, verdicts_of_variant
from scalerl.run.run_folder import RunFolder

if TYPE_CHECKING:
    from mlflow.entities import Run

NUM_FITS_METRIC = "system/fits"
RUN_TAG = "ablations.run_id"
VARIANT_TAG = "ablations.variant"
OVERRIDES_TAG = "ablations.overrides"
CURVE_TAG = "ablations.curve"
"""The runs whose mean is the metric `MEAN_PASS_RATE`."""
FIT_TAG = "ablations.fit"
"""The basis of the fit that MLflow shows, as in `fit_bases`."""


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The outcome of a push.

    SyncReport(tracking_uri="http://mlflow:5000", rows_pushed=120, rows_left=40, reason="... timed out")
    """

    tracking_uri: str
    rows_pushed: int
    rows_left: int
    reason: str = ""
    """The reason why rows or other data are left; empty if MLflow has everything."""
    outcome: Literal["pushed", "silent", "busy"] = "pushed"
    """How the push ended: "pushed" if the server kept answering (a damaged run log may still leave rows), "silent" if
    the server could not be used, "busy" if another process is pushing."""
    note: str = ""
    """A remark on a push that left nothing."""

    def __str__(self) -> str:
        because = f", because {self.reason}" if self.reason else ""
        note = f"; {self.note}" if self.note else ""
        if not (self.rows_pushed or self.rows_left or because or note):
            return f"MLflow at {self.tracking_uri} is up to date"
        return f"MLflow at {self.tracking_uri}: pushed {self.rows_pushed} rows, {self.rows_left} left{because}{note}"


def push_sweep(sweep: StartedSweep, tracking_uri: str | None = None, say_progress: Done | None = None) -> SyncReport:
    """Push everything of a sweep that MLflow lacks, by default into `mlflow.db` of the home folder.

    Problems of the server appear in the report and are never raised.
    """
    uri = tracking_uri or default_tracking_uri(sweep.home)
    try:
        with FileLock(sweep.folder / "sync.lock", timeout=0):
            # Loading MLflow takes seconds, and a store on this disk loses nothing by itself.
            own_store = sweep.home.path / "mlflow.db"
            is_own = uri == default_tracking_uri(sweep.home)
            if is_own and own_store.exists() and read_ledger(sweep).is_current(sweep, uri):
                return SyncReport(tracking_uri=uri, rows_pushed=0, rows_left=0)
            return Synchroniser(sweep, uri, say_progress).push()
    except Timeout:
        left = read_ledger(sweep).of(uri).num_left(sweep)
        busy = "another process is pushing them"
        return SyncReport(tracking_uri=uri, rows_pushed=0, rows_left=left, reason=busy, outcome="busy")


class Synchroniser:
    """Pushes one sweep to one server; the caller holds the sweep's lock."""

    def __init__(self, sweep: StartedSweep, tracking_uri: str, say_progress: Done | None = None) -> None:
        self.sweep, self.tracking_uri = sweep, tracking_uri
        self.ledger = read_ledger(sweep).of(tracking_uri)
        self.say_progress = say_progress or (lambda done, total: None)
        self.rows_pushed = 0
        self.problems: list[str] = []
        self.note = ""
        self._listed: dict[tuple[str, ...], Run] | None = None

    def push(self) -> SyncReport:
        """Push rows and states of every run, then the fits of variants that have ended; stops if the server fails."""
        set_up_client()
        outcome = "pushed"
        try:
            self._push_all()
        except failures_of_mlflow() as error:
            self.problems.append(short_reason(error))
            outcome = "silent"
        return SyncReport(
            tracking_uri=self.tracking_uri,
            rows_pushed=self.rows_pushed,
            rows_left=self.ledger.num_left(self.sweep),
            reason="; ".join(self.problems),
            outcome=outcome,
            note=self.note,
        )

    def _push_all(self) -> None:
        plan = self.sweep.plan
        self.experiment = MlflowExperiment(self.tracking_uri, self.sweep.home, name=plan.sweep, doc=plan.doc)
        self._take_experiment()
        self.rows_to_push = self.ledger.num_left(self.sweep)
        for variant in plan.variants:
            with self._noting(variant.name):
                parent = self._parent(variant)
                for run in variant.runs:
                    if num_rows(self.sweep.run(run.id)):
                        with self._noting(f"{variant.name}, seed {run.seed}"):
                            self._push_rows(run, *self._child(variant, run, parent.mlflow_id))
        self._push_fits()

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note an error of MLflow about one run, such as a run deleted there, and continue with the others."""
        try:
            yield
        except failures_of_mlflow() as error:
            if getattr(error, "error_code", None) not in OF_ONE_RUN:
                raise
            self.problems.append(f"{name}: {short_reason(error)}")

    def _take_experiment(self) -> None:
        """Start over if the server has lost the experiment in the ledger."""
        experiment = self.experiment
        if self.ledger.experiment_id != experiment.id:
            self.ledger = Ledger(path=self.ledger.path, tracking_uri=self.tracking_uri)
        self.ledger.experiment_id = experiment.id
        if experiment.files_elsewhere:
            self.note = (
                f"MLflow keeps files of this sweep in {experiment.files_elsewhere}, outside this home folder, which "
                "was moved or copied: no recipes and figures were written"
            )

    def _parent(self, variant: PlannedVariant) -> SyncedVariant:
        """The variant's run in MLflow; other overrides get a new run, since MLflow's params cannot change."""
        overrides = fingerprint(variant.overrides)
        known = self.ledger.variants.get(variant.name)
        described, found = describe(self.sweep, variant), None
        if known is None or known.overrides != overrides:
            tags = {VARIANT_TAG: described.name, OVERRIDES_TAG: overrides}
            began = started_ms([self.sweep.run(run.id) for run in variant.runs])
            found = self._find(*tags.values())
            found = found or self.experiment.create_run(described.name, tags | described.tags, began)
            known = SyncedVariant(mlflow_id=found.info.run_id, overrides=overrides)
        if known.described != described.fingerprint:
            self.experiment.describe(found or self.experiment.client.get_run(known.mlflow_id), described)
            self._log_recipe(known.mlflow_id, variant.runs[0])
            known = replace(known, described=described.fingerprint)
        self.ledger.note_variant(variant.name, known)
        return known

    def _child(self, variant: PlannedVariant, run: PlannedRun, parent_id: str) -> tuple[SyncedRun, "Run | None"]:
        """The seed's run in MLflow, under its variant even if the sweep has renamed that variant.

        The second value is the contents of the run in MLflow, if they were requested.
        """
        known, found = self.ledger.runs.get(run.id), None
        described = describe(self.sweep, variant, run)
        if known is None:
            tags, name = {RUN_TAG: run.id, PARENT_TAG: parent_id}, f"{described.name} seed {run.seed}"
            began = started_ms([self.sweep.run(run.id)])
            found = self._find(run.id) or self.experiment.create_run(name, tags | described.tags, began)
            known = SyncedRun(
                mlflow_id=found.info.run_id, parent_id=found.data.tags[PARENT_TAG], num_rows=0, state=UNKNOWN_STATE
            )
        if known.parent_id != parent_id:
            self.experiment.client.set_tag(known.mlflow_id, PARENT_TAG, parent_id)
            known = replace(known, parent_id=parent_id)
        if known.described != described.fingerprint:
            found = found or self.experiment.client.get_run(known.mlflow_id)
            self.experiment.describe(found, described)
            self._log_recipe(known.mlflow_id, run)
            known = replace(known, described=described.fingerprint)
        return known, found

    def _log_recipe(self, mlflow_id: str, run: PlannedRun) -> None:
        """Log the whole recipe as a file and its tasks as data sets; neither if the recipe cannot be read."""
        folder = self.sweep.run(run.id)
        try:
            datasets = datasets_of(stored_recipe(folder))
        except (TypeError, AttributeError):
            return
        if datasets:
            self.experiment.log_datasets(mlflow_id, datasets)
            self.experiment.log_file(mlflow_id, folder.path / "recipe.json")

    def _push_rows(self, run: PlannedRun, synced: SyncedRun, shown: "Run | None") -> None:
        """Push the rows and the state of one run; `shown` is its state in MLflow, if known."""
        folder = self.sweep.run(run.id)
        if synced.num_rows < num_rows(folder):
            # A process killed after a batch, before the ledger was written, has pushed more than the ledger knows.
            shown = shown or self.experiment.client.get_run(synced.mlflow_id)
            synced = replace(synced, num_rows=int(shown.data.metrics.get(NUM_ROWS_METRIC, 0)))
            batches = row_batches(
                folder,
                synced.num_rows,
                started_ms=shown.info.start_time,
                max_points=MAX_BATCH_METRICS,
                problems=self.problems,
            )
            try:
                for count, points in batches:
                    self.experiment.log_points(synced.mlflow_id, points)
                    self.rows_pushed += count - synced.num_rows
                    synced = replace(synced, num_rows=count)
                    self.say_progress(self.rows_pushed, self.rows_to_push)
            finally:
                self.ledger.note_run(run.id, synced)
        state = written_state(folder)
        if synced.state != state:
            self.experiment.set_state(synced.mlflow_id, state, ended_ms([folder]))
            synced = replace(synced, state=state)
        self.ledger.note_run(run.id, synced)

    def _push_fits(self) -> None:
        # Rows written during the fit make the next push fit again.
        bases = fit_bases(self.sweep)
        lacking = [
            variant
            for variant in self.sweep.plan.variants
            if variant.name in self.ledger.variants
            and variant.name in bases
            and not self.ledger.has_fit(variant.name, bases[variant.name])
        ]
        if lacking:
            results = read_results(self.sweep)
            differences = differences_picture(results, "png", width_in=6.9, dpi=130)
            for variant in lacking:
                with self._noting(variant.name):
                    parent_id = self.ledger.variants[variant.name].mlflow_id
                    self.experiment.log_bytes(parent_id, differences, "differences.png")
                    if variant.name == self.sweep.plan.reference and len(bases) == len(self.sweep.plan.variants):
                        page = report_page(results, now=datetime.now(UTC))
                        self.experiment.log_bytes(parent_id, page.encode(), "report.html")
                    self._push_fit(results, variant, bases[variant.name])

    def _push_fit(self, results: Results, variant: PlannedVariant, basis: str) -> None:
        """Push the fit: metrics of the variant's run and of its seeds, verdicts as tags, pictures as files."""
        parent = self.ledger.variants[variant.name]
        ended = ended_ms(compared_runs(self.sweep, variant))
        self._log_mean_curve(parent.mlflow_id, results, variant)
        self._log_fit(parent.mlflow_id, results, variant, basis, ended)
        pair = {results.plan.reference, variant.name}
        picture = curves_picture(results, "png", width_in=PAGE_IN, shown=pair, dpi=130)
        self.experiment.log_bytes(parent.mlflow_id, picture, "curve.png")
        is_done = all(
            run.id in results.stopped or written_state(self.sweep.run(run.id)) in (State.DONE, State.STOPPED)
            for run in variant.runs
        )
        self.experiment.set_state(parent.mlflow_id, State.DONE if is_done else State.FAILED, ended)
        self.ledger.note_variant(variant.name, replace(parent, fit=basis))

    def _log_mean_curve(self, mlflow_id: str, results: Results, variant: PlannedVariant) -> None:
        """Log the mean of the seeds' curves.

        MLflow cannot delete a point. If MLflow has a mean of other seeds, the new mean gets a name with the number of
        seeds.
        """
        run = self.experiment.client.get_run(mlflow_id)
        runs = [one for one in results.variant(variant.name).runs if one.curve is not None]
        mark = fingerprint({"runs": [one.id for one in runs]})
        is_other = run.data.tags.get(CURVE_TAG, mark) != mark
        name = f"{MEAN_PASS_RATE} {len(runs)} seeds" if is_other else MEAN_PASS_RATE
        points = [
            MetricPoint(metric, value, run.info.start_time + step, step)
            for step, compute, rate in mean_curve([one.curve for one in runs if one.curve is not None])
            for metric, value in ((MEAN_COMPUTE, compute), (name, rate))
        ]
        for begin in range(0, len(points), MAX_BATCH_METRICS):
            self.experiment.log_points(mlflow_id, points[begin : begin + MAX_BATCH_METRICS])
        if CURVE_TAG not in run.data.tags:
            self.experiment.client.set_tag(mlflow_id, CURVE_TAG, mark)

    def _log_fit(self, mlflow_id: str, results: Results, variant: PlannedVariant, basis: str, ended: int) -> None:
        """Log numbers and verdicts, unless MLflow shows them already; NaN for numbers that only an earlier fit gave.

        The variant's own numbers come last, so that MLflow is complete once it has them.
        """
        shown = self.experiment.client.get_run(mlflow_id).data
        if shown.tags.get(FIT_TAG) == basis:
            return
        number = int(shown.metrics.get(NUM_FITS_METRIC, 0)) + 1

        def as_points(numbers: dict[str, float]) -> list[MetricPoint]:
            return [MetricPoint(name, value, ended, number) for name, value in numbers.items()]

        fitted = results.variant(variant.name)
        for run in fitted.runs:
            if child := self.ledger.runs.get(run.id):
                tags = verdicts_of_run(results, fitted, run)
                self.experiment.log_points(child.mlflow_id, as_points(numbers_of_run(results, run)), tags)
        earlier = [name for name in shown.metrics if not name.startswith("eval/")]
        numbers = dict.fromkeys(earlier, math.nan) | numbers_of_variant(results, variant.name)
        tags = verdicts_of_variant(results, variant.name) | {FIT_TAG: basis}
        self.experiment.log_points(mlflow_id, as_points(numbers | {NUM_FITS_METRIC: number}), tags)

    def _find(self, *key: str) -> "Run | None":
        """The run of the experiment that was created for a run (its id) or a variant (its name and overrides)."""
        if self.experiment.is_new:
            return None
        if self._listed is None:
            self._listed = {_key_of(run.data.tags): run for run in reversed(self.experiment.runs())}
        return self._listed.get(key)


def _key_of(tags: dict[str, str]) -> tuple[str, ...]:
    if RUN_TAG in tags:
        return (tags[RUN_TAG],)
    return tags.get(VARIANT_TAG, ""), tags.get(OVERRIDES_TAG, "")


def started_ms(folders: list[RunFolder]) -> int | None:
    """Time at which the first of the runs was planned, in milliseconds since 1970; None if no run was planned."""
    recipes = [folder.path / "recipe.json" for folder in folders]
    return min((int(1000 * recipe.stat().st_mtime) for recipe in recipes if recipe.exists()), default=None)


def ended_ms(folders: list[RunFolder]) -> int:
    """Time of the last sign of life of any of the runs, in milliseconds since 1970."""
    return int(1000 * max(folder.read_status().heartbeat for folder in folders))
