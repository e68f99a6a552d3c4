"""MLflow, filled from the run folders: one experiment per sweep, one parent run per variant, one child run per seed.

The run folder is authoritative, so a tracking server may be down, slow or full: a push asks MLflow for the runs of the
experiment, sends what their tags and numbers say they lack, and reports what is left. Nothing is pushed twice, even if
the process died in between: every batch of rows tells MLflow how many rows it has (metric `system/rows`), and the tags
of a description and of a fit come last. A later fit of a variant has a greater step (metric `system/fits`), so that
MLflow shows the newest fit and keeps the earlier ones.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from ablations.findings.results import Results, read_results
from ablations.home.notes import notes_of_sweep
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.report.figures.chart import PAGE_IN
from ablations.report.figures.plots import curves_picture, differences_picture
from ablations.report.formats import report_page
from ablations.terminal.progress_bar import Done
from ablations.terminal.visible import made_visible
from ablations.tracking.descriptions import NOTES_TAG, TAGS_TAG, Description, datasets_of, fingerprint
from ablations.tracking.mean_curve import mean_curve
from ablations.tracking.mlflow_experiment import (
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
from ablations.tracking.sync_note import (
    SyncedRun,
    compared_runs,
    content_of,
    default_tracking_uri,
    describe,
    fit_bases,
    is_current,
    num_rows,
    read_note,
    stored_recipe,
    written_state,
)
from scalerl.credentials import without_secrets
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import log_fault

if TYPE_CHECKING:
    from mlflow.entities import Run

NUM_FITS_METRIC = "system/fits"
RUN_TAG = "ablations.run_id"
VARIANT_TAG = "ablations.variant"
OVERRIDES_TAG = "ablations.overrides"
CURVE_TAG = "ablations.curve"
"""The runs whose mean is the metric `MEAN_PASS_RATE`."""
DESCRIBED_TAG = "ablations.described"
"""Fingerprint of the tags and params that MLflow already has."""
FIT_TAG = "ablations.fit"
"""The basis of the fit that MLflow shows, as in `fit_bases`."""


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The outcome of a push.

    SyncReport(tracking_uri="http://mlflow:5000", rows_pushed=120, rows_left=40, reason="... timed out")
    """

    tracking_uri: str
    """The server's URL, without user and password."""
    rows_pushed: int
    rows_left: int
    reason: str = ""
    """The reason why rows or other data are left; empty if MLflow has everything."""
    outcome: Literal["pushed", "silent", "busy"] = "pushed"
    """How the push ended: "pushed" if the server kept answering (a damaged run log may still leave rows), "silent" if
    the server could not be used, "busy" if another process is pushing."""
    note: str = ""
    """A remark on a push that left nothing behind."""

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
            is_own = uri == default_tracking_uri(sweep.home)
            if is_own and (sweep.home.path / "mlflow.db").exists() and is_current(sweep, uri):
                return SyncReport(tracking_uri=uri, rows_pushed=0, rows_left=0)
            return Synchroniser(sweep, uri, say_progress).push()
    except Timeout:
        left = read_note(sweep.home, sweep.name).of(uri).num_left(sweep)
        busy = "another process is pushing them"
        return SyncReport(tracking_uri=without_secrets(uri), rows_pushed=0, rows_left=left, reason=busy, outcome="busy")


class Synchroniser:
    """Pushes one sweep to one server; the caller holds the sweep's lock."""

    def __init__(self, sweep: StartedSweep, tracking_uri: str, say_progress: Done | None = None) -> None:
        self.sweep, self.tracking_uri = sweep, tracking_uri
        self.note = read_note(sweep.home, sweep.name).of(tracking_uri)
        self.synced = {**self.note.runs}
        self.say_progress = say_progress or (lambda done, total: None)
        self.rows_pushed = 0
        self.problems: list[str] = []
        self.remark = ""
        self.found: dict[tuple[str, ...], Run] = {}
        """The runs of the experiment by `_key_of` their tags, as they were when the push began or made them."""

    def push(self) -> SyncReport:
        """Push rows and states of every run, then the fits of variants that have ended; stops if the server fails."""
        set_up_client()
        content = content_of(self.sweep)  # rows written during the push are left to the next
        outcome = "pushed"
        try:
            self._push_all()
        except failures_of_mlflow() as error:
            self.problems.append(short_reason(error))
            outcome = "silent"
        note = replace(self.note, runs=self.synced, content="" if self.problems else content)
        note.write(self.sweep)
        return SyncReport(
            tracking_uri=without_secrets(self.tracking_uri),
            rows_pushed=self.rows_pushed,
            rows_left=note.num_left(self.sweep),
            reason="; ".join(self.problems),
            outcome=outcome,
            note=self.remark,
        )

    def _push_all(self) -> None:
        plan = self.sweep.plan
        self.experiment = MlflowExperiment(self.tracking_uri, self.sweep.home, name=plan.sweep, doc=plan.doc)
        self.note = replace(self.note, experiment_id=self.experiment.id)
        self.experiment.annotate(notes_of_sweep(self.sweep))
        if self.experiment.files_elsewhere:
            self.remark = (
                f"MLflow keeps files of this sweep in {self.experiment.files_elsewhere}, outside this home folder, "
                "which was moved or copied: no recipes and figures were written"
            )
        self.found = {_key_of(run.data.tags): run for run in reversed(self.experiment.runs())}
        self.synced = {key[0]: _synced(run) for key, run in self.found.items() if len(key) == 1}
        self.rows_to_push = replace(self.note, runs=self.synced).num_left(self.sweep)
        for variant in plan.variants:
            with self._noting(variant.name):
                parent = self._parent(variant)
                for run in variant.runs:
                    if num_rows(self.sweep.run(run.id)):
                        with self._noting(f"{variant.name}, seed {run.seed}"):
                            self._push_run(run, self._child(variant, run, parent.info.run_id))
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

    def _parent(self, variant: PlannedVariant) -> "Run":
        """The variant's run in MLflow; other overrides get a new run, since MLflow's params cannot change."""
        described = describe(self.sweep, variant)
        return self._described(_key_of_variant(variant), described.name, described, variant.runs)

    def _child(self, variant: PlannedVariant, run: PlannedRun, parent_id: str) -> "Run":
        """The seed's run in MLflow, under its variant even if the sweep has renamed that variant."""
        described = describe(self.sweep, variant, run)
        described = replace(described, tags=described.tags | {PARENT_TAG: parent_id})
        return self._described({RUN_TAG: run.id}, f"{described.name} seed {run.seed}", described, [run])

    def _described(self, key: dict[str, str], name: str, described: Description, runs: Sequence[PlannedRun]) -> "Run":
        """The run in MLflow with these key tags, made if it is missing, with its description, recipe and data sets."""
        place = tuple(key.values())
        if place not in self.found:
            began = started_ms([self.sweep.run(one.id) for one in runs])
            self.found[place] = self.experiment.create_run(name, key | described.tags, began)
        found, mark = self.found[place], described.fingerprint
        if found.data.tags.get(DESCRIBED_TAG) != mark:
            self._log_recipe(found.info.run_id, self.sweep.run(runs[0].id))
            gone = {name: "" for name in (NOTES_TAG, TAGS_TAG) if name in found.data.tags}
            self.experiment.describe(found, replace(described, tags=gone | described.tags | {DESCRIBED_TAG: mark}))
        return found

    def _log_recipe(self, mlflow_id: str, folder: RunFolder) -> None:
        """Log the whole recipe as a file and its tasks as data sets; neither if the recipe cannot be read."""
        try:
            datasets = datasets_of(stored_recipe(folder))
        except (TypeError, AttributeError):
            return
        if datasets:
            self.experiment.log_datasets(mlflow_id, datasets)
            self.experiment.log_bytes(mlflow_id, folder.shareable_recipe(), "recipe.json")

    def _push_run(self, run: PlannedRun, found: "Run") -> None:
        """Push the rows that MLflow lacks, then the state."""
        folder = self.sweep.run(run.id)
        synced, written = _synced(found), num_rows(folder)
        if synced.num_rows < written and (fault := log_fault(folder.metrics, folder.checkpoint)):
            self.problems.append(f"{fault}; its rows are not pushed")
        elif synced.num_rows < written:
            batches = row_batches(
                folder,
                synced.num_rows,
                started_ms=found.info.start_time,
                max_points=self.experiment.max_points,
                problems=self.problems,
            )
            for count, points in batches:
                self.experiment.log_points(synced.mlflow_id, points)
                self.rows_pushed += count - synced.num_rows
                synced = self.synced[run.id] = replace(synced, num_rows=count)
                self.say_progress(self.rows_pushed, self.rows_to_push)
        self.synced[run.id] = synced
        self.experiment.set_state(found, written_state(folder), ended_ms([folder]))

    def _push_fits(self) -> None:
        # Rows written during the fit make the next push fit again.
        bases = fit_bases(self.sweep)
        lacking = [
            (variant, found)
            for variant in self.sweep.plan.variants
            if (found := self.found.get(tuple(_key_of_variant(variant).values())))
            and variant.name in bases
            and found.data.tags.get(FIT_TAG) != bases[variant.name]
        ]
        if lacking:
            results = read_results(self.sweep)
            differences = differences_picture(results, "png", width_in=6.9, dpi=130)
            for variant, found in lacking:
                with self._noting(variant.name):
                    self.experiment.log_bytes(found.info.run_id, differences, "differences.png")
                    if variant.name == self.sweep.plan.reference and len(bases) == len(self.sweep.plan.variants):
                        page = report_page(results, now=datetime.now(UTC))
                        self.experiment.log_bytes(found.info.run_id, page.encode(), "report.html")
                    self._push_fit(found, results, variant, bases[variant.name])

    def _push_fit(self, found: "Run", results: Results, variant: PlannedVariant, basis: str) -> None:
        """Push the fit into the variant's run: curve, picture, state, then the numbers, its tag last."""
        ended = ended_ms(compared_runs(self.sweep, variant))
        self._log_mean_curve(found, results, variant)
        pair = {results.plan.reference, variant.name}
        picture = curves_picture(results, "png", width_in=PAGE_IN, shown=pair, dpi=130)
        self.experiment.log_bytes(found.info.run_id, picture, "curve.png")
        is_done = all(
            run.id in results.stopped or written_state(self.sweep.run(run.id)) in (State.DONE, State.STOPPED)
            for run in variant.runs
        )
        self.experiment.set_state(found, State.DONE if is_done else State.FAILED, ended)
        self._log_fit(found, results, variant, basis, ended)

    def _log_mean_curve(self, found: "Run", results: Results, variant: PlannedVariant) -> None:
        """Log the mean of the curves of the seeds that count.

        MLflow cannot delete a point. If MLflow has a mean of other seeds, the new mean gets a name with the number of
        seeds.
        """
        of_variant = results.variant(variant.name)
        runs = [one for one in of_variant.runs if one.curve is not None and not of_variant.is_left_out(one)]
        mark = fingerprint({"runs": [one.id for one in runs]})
        if CURVE_TAG not in found.data.tags:
            self.experiment.client.set_tag(found.info.run_id, CURVE_TAG, mark)
        is_other = found.data.tags.get(CURVE_TAG, mark) != mark
        name = f"{MEAN_PASS_RATE} {len(runs)} seeds" if is_other else MEAN_PASS_RATE
        points = [
            MetricPoint(metric, value, found.info.start_time + step, step)
            for step, compute, rate in mean_curve([one.curve for one in runs if one.curve is not None])
            for metric, value in ((MEAN_COMPUTE, compute), (name, rate))
        ]
        for begin in range(0, len(points), self.experiment.max_points):
            self.experiment.log_points(found.info.run_id, points[begin : begin + self.experiment.max_points])

    def _log_fit(self, found: "Run", results: Results, variant: PlannedVariant, basis: str, ended: int) -> None:
        """Log numbers and verdicts; NaN for numbers that only an earlier fit gave.

        The variant's own numbers come last, so that MLflow is complete once it has them.
        """
        number = int(found.data.metrics.get(NUM_FITS_METRIC, 0)) + 1

        def as_points(numbers: dict[str, float]) -> list[MetricPoint]:
            return [MetricPoint(name, value, ended, number) for name, value in numbers.items()]

        fitted = results.variant(variant.name)
        for run in fitted.runs:
            if child := self.synced.get(run.id):
                tags = verdicts_of_run(results, fitted, run)
                self.experiment.log_points(child.mlflow_id, as_points(numbers_of_run(results, run)), tags)
        earlier = [name for name in found.data.metrics if not name.startswith("eval/")]
        numbers = dict.fromkeys(earlier, math.nan) | numbers_of_variant(results, variant.name)
        tags = verdicts_of_variant(results, variant.name) | {FIT_TAG: basis}
        self.experiment.log_points(found.info.run_id, as_points(numbers | {NUM_FITS_METRIC: number}), tags)


def _key_of_variant(variant: PlannedVariant) -> dict[str, str]:
    return {VARIANT_TAG: made_visible(variant.name), OVERRIDES_TAG: fingerprint(variant.overrides)}


def _synced(run: "Run") -> SyncedRun:
    return SyncedRun(mlflow_id=run.info.run_id, num_rows=int(run.data.metrics.get(NUM_ROWS_METRIC, 0)))


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
