"""MLflow, made from the run folders: one experiment a sweep, one parent run a variant, one child run a seed.

The run folder is the truth, so a tracking server may be down, slow or full: a synchroniser pushes what is missing, batch
by batch, and says what is left. Nothing is pushed twice. How far a run has got is written into MLflow with every batch
(metric `sync/rows`) and asked back before the next; `sync.json` in the sweep's folder keeps the same for a quick look,
together with MLflow's own ids. When that file is lost the ids are found again by tag.

This is the only file that knows MLflow. It is imported inside the functions: the command line must start quickly.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from scalerl.metrics import read_rows
from scalerl.run_folder import RunFolder, write_atomically

from ablations.figures import variant_figure
from ablations.home import Home
from ablations.plan import Plan, PlannedRun, PlannedVariant
from ablations.results import Results, read_results

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run

MAX_BATCH_METRICS = 1000
"""MLflow refuses more metrics in one request."""
MAX_BATCH_PARAMS = 100
"""MLflow refuses more parameters in one request."""
PUSHED_METRIC = "sync/rows"
RUN_TAG, VARIANT_TAG, OVERRIDES_TAG, PARENT_TAG = (
    "ablations.run_id",
    "ablations.variant",
    "ablations.overrides",
    "mlflow.parentRunId",
)
PLACE_FIELDS = frozenset({"step", "wall_s"})
"""Where a row's metrics are drawn, so not metrics themselves."""
ENDED = {"done": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
"""State of a run folder to MLflow's word for it; anything else is RUNNING."""
CLIENT_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""By default an MLflow client waits four minutes for a dead server, and reports its use over the internet."""


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """`SyncReport(tracking_uri="http://mlflow:5000", num_pushed=120, num_left=40, reason="the server is down")`."""

    tracking_uri: str
    num_pushed: int
    num_left: int
    """Rows of the run logs that MLflow has not."""
    reason: str = ""
    """Why something is left; empty when nothing is."""

    def __str__(self) -> str:
        because = f", because {self.reason}" if self.reason else ""
        return f"{self.tracking_uri}: pushed {self.num_pushed} rows, {self.num_left} left{because}"


@dataclass(frozen=True, kw_only=True)
class SyncedRun:
    """A child run in MLflow: `SyncedRun(mlflow_id="8c1f...", parent_id="02ab...", num_rows=120, state="running")`."""

    mlflow_id: str
    parent_id: str
    num_rows: int
    state: str


@dataclass(frozen=True, kw_only=True)
class SyncedVariant:
    """A parent run in MLflow, and how many rows its runs had when their fit was pushed, -1 for no fit."""

    mlflow_id: str
    overrides: str
    num_fitted_rows: int = -1


@dataclass(kw_only=True)
class Ledger:
    """`sync.json`: what MLflow has of one sweep, as far as is known here."""

    path: Path
    tracking_uri: str
    runs: dict[str, SyncedRun] = field(default_factory=dict)
    """By run id."""
    variants: dict[str, SyncedVariant] = field(default_factory=dict)
    """By name."""

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """The ledger in a file; an empty one when the file is missing or broken, since MLflow can be asked."""
        try:
            content = json.loads(path.read_bytes())
            return cls(
                path=path,
                tracking_uri=content["tracking_uri"],
                runs={run_id: SyncedRun(**run) for run_id, run in content["runs"].items()},
                variants={name: SyncedVariant(**variant) for name, variant in content["variants"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path=path, tracking_uri="")

    def write(self) -> None:
        """Replace the file in one step."""
        content = {"tracking_uri": self.tracking_uri, "runs": _plain(self.runs), "variants": _plain(self.variants)}
        write_atomically(self.path, json.dumps(content, indent=1).encode())

    def num_pushed(self, run_id: str) -> int:
        """Rows of a run that MLflow has."""
        return self.runs[run_id].num_rows if run_id in self.runs else 0


def sync(home: Home, sweep_name: str, tracking_uri: str | None = None) -> SyncReport:
    """Push everything of a sweep that MLflow has not, by default into `mlflow.db` of the home folder.

    Whatever is wrong with the server is said in the report, never raised.
    """
    plan = Plan.read(home.sweep(sweep_name) / "plan.json")
    uri = tracking_uri or default_tracking_uri(home)
    try:
        with FileLock(home.sweep(sweep_name) / "sync.lock", timeout=0):
            return Synchroniser(home, plan, uri).push()
    except Timeout:
        num_left = _num_left(home, plan, Ledger.read(_ledger_path(home, plan)))
        return SyncReport(tracking_uri=uri, num_pushed=0, num_left=num_left, reason="another process is pushing them")


def is_current(home: Home, sweep_name: str) -> bool:
    """Whether MLflow had every row, state and fit of a sweep when it was last pushed to; MLflow itself is not asked."""
    plan = Plan.read(home.sweep(sweep_name) / "plan.json")
    ledger = Ledger.read(_ledger_path(home, plan))
    return all(_is_variant_current(home, variant, ledger) for variant in plan.variants)


def default_tracking_uri(home: Home) -> str:
    """The SQLite store in the home folder."""
    return f"sqlite:///{home.path.absolute() / 'mlflow.db'}"


class Synchroniser:
    """Pushes one sweep to one server; the caller holds the sweep's lock."""

    def __init__(self, home: Home, plan: Plan, tracking_uri: str) -> None:
        self.home, self.plan, self.tracking_uri = home, plan, tracking_uri
        self.ledger = Ledger.read(_ledger_path(home, plan))
        if self.ledger.tracking_uri != tracking_uri:
            self.ledger = Ledger(path=self.ledger.path, tracking_uri=tracking_uri)
        self.num_pushed = 0
        self.problems: list[str] = []

    def push(self) -> SyncReport:
        """Rows and states of every run, then the fits of finished variants; stops where the server fails."""
        os.environ.update({name: os.environ.get(name, value) for name, value in CLIENT_SETTINGS.items()})
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            self._push_all()
        except (MlflowException, SQLAlchemyError, OSError) as error:
            self.problems.append(f"{type(error).__name__}: {error}".split("\n", 1)[0][:300])
        return SyncReport(
            tracking_uri=self.tracking_uri,
            num_pushed=self.num_pushed,
            num_left=_num_left(self.home, self.plan, self.ledger),
            reason="; ".join(self.problems),
        )

    def _push_all(self) -> None:
        self.client, self.experiment_id = self._open()
        for variant in self.plan.variants:
            parent = self._parent(variant)
            for run in variant.runs:
                if _num_rows(self.home.run(run.id)):
                    self._push_run(variant, run, parent.mlflow_id)
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
            tags = {"mlflow.note.content": self.plan.doc}
            return client, client.create_experiment(self.plan.sweep, artifact_location=artifacts, tags=tags)

    def _parent(self, variant: PlannedVariant) -> SyncedVariant:
        """The variant's run in MLflow; one whose overrides have changed is another variant, as parameters cannot change."""
        overrides = _fingerprint(variant.overrides)
        known = self.ledger.variants.get(variant.name)
        if known is None or known.overrides != overrides:
            tags = {VARIANT_TAG: variant.name, OVERRIDES_TAG: overrides}
            found = self._find(tags) or self._create(variant.name, tags, flatten(variant.overrides))
            known = SyncedVariant(mlflow_id=found.info.run_id, overrides=overrides)
            self._note_variant(variant.name, known)
        return known

    def _child(self, variant: PlannedVariant, run: PlannedRun, parent_id: str) -> SyncedRun:
        """The seed's run in MLflow, under its variant."""
        known = self.ledger.runs.get(run.id)
        if known is None:
            found = self._find({RUN_TAG: run.id})
            if found is None:
                recipe = json.loads((self.home.run(run.id).path / "recipe.json").read_bytes())["recipe"]
                tags = {RUN_TAG: run.id, PARENT_TAG: parent_id}
                found = self._create(f"{variant.name} seed {run.seed}", tags, {"seed": run.seed} | flatten(recipe))
            known = SyncedRun(
                mlflow_id=found.info.run_id, parent_id=found.data.tags[PARENT_TAG], num_rows=0, state="running"
            )
        if known.parent_id != parent_id:
            self.client.set_tag(known.mlflow_id, PARENT_TAG, parent_id)
            known = replace(known, parent_id=parent_id)
        self._note_run(run.id, known)
        return known

    def _push_run(self, variant: PlannedVariant, run: PlannedRun, parent_id: str) -> None:
        synced, folder = self._child(variant, run, parent_id), self.home.run(run.id)
        if synced.num_rows < _num_rows(folder):
            # A process killed between a batch and its note in the ledger has pushed more than the ledger knows.
            pushed = self.client.get_run(synced.mlflow_id).data.metrics.get(PUSHED_METRIC, 0)
            synced = replace(synced, num_rows=int(pushed))
            for num_rows, metrics in batches(folder, synced.num_rows, self.problems):
                self.client.log_batch(synced.mlflow_id, metrics)
                self.num_pushed += num_rows - synced.num_rows
                synced = replace(synced, num_rows=num_rows)
                self._note_run(run.id, synced)
        state = folder.read_status().get("state", "running")
        if synced.state != state:
            self._set_state(synced.mlflow_id, state)
            synced = replace(synced, state=state)
        self._note_run(run.id, synced)

    def _push_fits(self) -> None:
        finished = [
            variant
            for variant in self.plan.variants
            if _has_ended(self.home, variant) and not _is_fit_current(self.home, variant, self.ledger)
        ]
        if not finished:
            return
        results = read_results(self.home, self.plan)
        for variant in finished:
            self._push_fit(results, variant)

    def _push_fit(self, results: Results, variant: PlannedVariant) -> None:
        """The fit as metrics and tags of the parent run, the figure as its artifact."""
        from mlflow.entities import Metric

        parent, result = self.ledger.variants[variant.name], results.variant(variant.name)
        num_rows, ended = _num_variant_rows(self.home, variant), _ended_at(self.home, variant)
        metrics = [Metric(name, value, ended, num_rows) for name, value in result.numbers().items()]
        self.client.log_batch(parent.mlflow_id, metrics)
        self.client.set_tag(parent.mlflow_id, "ablations.verdict", result.verdict)
        figure = variant_figure(results, variant.name).to_html(include_plotlyjs=True)
        self.client.log_text(parent.mlflow_id, figure, "curve.html")
        all_done = all(self.home.run(run.id).read_status()["state"] == "done" for run in variant.runs)
        self._set_state(parent.mlflow_id, "done" if all_done else "failed")
        self._note_variant(variant.name, replace(parent, num_fitted_rows=num_rows))

    def _find(self, tags: dict[str, str]) -> "Run | None":
        """The run of this experiment with these tags; of several, the oldest."""
        asked = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
        found = self.client.search_runs(
            [self.experiment_id], asked, max_results=1, order_by=["attributes.start_time ASC"]
        )
        return found[0] if found else None

    def _create(self, name: str, tags: dict[str, str], params: dict[str, Any]) -> "Run":
        """A new run with its parameters."""
        from mlflow.entities import Param

        run = self.client.create_run(self.experiment_id, tags=tags, run_name=name)
        rest = iter([Param(key, str(value)) for key, value in params.items()])
        while chunk := list(islice(rest, MAX_BATCH_PARAMS)):
            self.client.log_batch(run.info.run_id, params=chunk)
        return run

    def _set_state(self, mlflow_id: str, state: str) -> None:
        if state in ENDED:
            self.client.set_terminated(mlflow_id, ENDED[state])
        else:
            self.client.update_run(mlflow_id, "RUNNING")

    def _note_run(self, run_id: str, synced: SyncedRun) -> None:
        if self.ledger.runs.get(run_id) != synced:
            self.ledger.runs[run_id] = synced
            self.ledger.write()

    def _note_variant(self, name: str, synced: SyncedVariant) -> None:
        self.ledger.variants[name] = synced
        self.ledger.write()


def batches(folder: RunFolder, num_pushed: int, problems: list[str]) -> Iterator[tuple[int, list["Metric"]]]:
    """What is left of a run log: (rows of the run so far, metrics of whole rows, no more than MLflow takes at once).

    A line that cannot be read ends the run log; why is added to `problems`.
    """
    num_rows, batch = num_pushed, []
    started = (folder.path / "recipe.json").stat().st_mtime
    for metrics in _row_metrics(folder, num_pushed, started, problems):
        if len(batch) + len(metrics) > MAX_BATCH_METRICS:
            yield num_rows, batch
            batch = []
        batch += metrics
        num_rows += 1
    if batch:
        yield num_rows, batch


def _row_metrics(
    folder: RunFolder, num_pushed: int, started: float, problems: list[str]
) -> Iterator[list["Metric"]]:
    """The metrics of each row after the first `num_pushed`, at its step and time, and how many rows that makes."""
    from mlflow.entities import Metric

    rows = enumerate(read_rows(folder.metrics), start=1)
    try:
        for num_rows, row in islice(rows, num_pushed, None):
            timestamp = int(1000 * (started + row.get("wall_s", 0)))
            values = [Metric(name, value, timestamp, row["step"]) for name, value in row_values(row).items()]
            yield [*values, Metric(PUSHED_METRIC, num_rows, timestamp, num_rows)]
    except ValueError as error:
        problems.append(str(error))


def row_values(row: dict[str, Any]) -> dict[str, float]:
    """The numbers of a row under their MLflow names: {"train/loss": -0.012, "train/staleness_mean": 2.4, ...}.

    A histogram gives its mean and its largest value; what is not a number is left out.
    """
    values: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, int | float) and name not in PLACE_FIELDS:
            values[f"{row['kind']}/{name}"] = float(value)
        elif isinstance(value, dict) and value:
            counts = {float(key): count for key, count in value.items()}
            mean = sum(key * count for key, count in counts.items()) / sum(counts.values())
            values[f"{row['kind']}/{name}_mean"] = mean
            values[f"{row['kind']}/{name}_max"] = max(counts)
    return values


def flatten(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names: {"loss": {"type": "dapo"}} gives {"loss.type": "dapo"}."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value) if isinstance(value, list) else value
    return flat


def _fingerprint(overrides: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(overrides, sort_keys=True).encode()).hexdigest()[:12]


def _plain(entries: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: asdict(entry) for key, entry in entries.items()}


def _ledger_path(home: Home, plan: Plan) -> Path:
    return home.sweep(plan.sweep) / "sync.json"


def _num_rows(folder: RunFolder) -> int:
    """Whole lines of the run log."""
    try:
        with folder.metrics.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0


def _num_variant_rows(home: Home, variant: PlannedVariant) -> int:
    return sum(_num_rows(home.run(run.id)) for run in variant.runs)


def _num_left(home: Home, plan: Plan, ledger: Ledger) -> int:
    runs = [run for variant in plan.variants for run in variant.runs]
    return sum(max(_num_rows(home.run(run.id)) - ledger.num_pushed(run.id), 0) for run in runs)
