"""A local record, `sync.json`, of a sweep's contents in MLflow, and a comparison with the run folders.

{"tracking_uri": "sqlite:///...",
 "experiment_id": "1",
 "runs": {"3f0c9a1b2d4e": {"mlflow_id": "8c1f...", "parent_id": "02ab...", "num_rows": 120, "state": "done",
                           "described": "5be0c11f3a27"}},
 "variants": {"scalerl": {"mlflow_id": "02ab...", "overrides": "44136fa355b3", "described": "c07e94d1b6f2",
                          "fit": "9d0c71e2b85a"}}}
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ablations.files.database import sqlite_url
from ablations.home.home import Home
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.tracking.descriptions import Description, description_of, fingerprint
from scalerl.run.run_folder import RunFolder, write_atomically

NOTHING_YET = ""
UNKNOWN_STATE = "unknown"
"""The state of a run not yet reported to MLflow."""


@dataclass(frozen=True, kw_only=True)
class SyncedRun:
    """The run of a seed in MLflow: its id, its parent's id, the rows of the run log and the state that MLflow has."""

    mlflow_id: str
    parent_id: str
    num_rows: int
    state: str
    described: str = NOTHING_YET
    """Fingerprint of its tags and params in MLflow."""


@dataclass(frozen=True, kw_only=True)
class SyncedVariant:
    """The parent run of a variant."""

    mlflow_id: str
    overrides: str
    """`fingerprint` of the overrides among its params."""
    described: str = NOTHING_YET
    """Fingerprint of its tags and params in MLflow."""
    fit: str = NOTHING_YET
    """The basis (`fit_bases`) of the fit in MLflow."""


@dataclass(kw_only=True)
class Ledger:
    """The content of `sync.json` for one server, with runs by run id and variants by name."""

    path: Path
    tracking_uri: str = ""
    experiment_id: str = ""
    runs: dict[str, SyncedRun] = field(default_factory=dict)
    variants: dict[str, SyncedVariant] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """The ledger in a file; empty if the file is missing or damaged, since MLflow can be queried again."""
        try:
            content = json.loads(path.read_bytes())
            return cls(
                path=path,
                tracking_uri=content["tracking_uri"],
                experiment_id=content["experiment_id"],
                runs={run_id: SyncedRun(**run) for run_id, run in content["runs"].items()},
                variants={name: SyncedVariant(**variant) for name, variant in content["variants"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path=path)

    def of(self, tracking_uri: str) -> "Ledger":
        """The ledger of a server: this ledger, or an empty one if this ledger belongs to another server."""
        return self if self.tracking_uri == tracking_uri else Ledger(path=self.path, tracking_uri=tracking_uri)

    def note_run(self, run_id: str, run: SyncedRun) -> None:
        if self.runs.get(run_id) != run:
            self.runs[run_id] = run
            self._write()

    def note_variant(self, name: str, variant: SyncedVariant) -> None:
        if self.variants.get(name) != variant:
            self.variants[name] = variant
            self._write()

    def _write(self) -> None:
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        write_atomically(self.path, json.dumps(content, indent=1).encode())

    def num_left(self, sweep: StartedSweep) -> int:
        """Number of rows in the sweep's run logs that MLflow lacks."""
        known = {run_id: run.num_rows for run_id, run in self.runs.items()}
        # A run that resumes from its last checkpoint has fewer rows than before until it catches up.
        return sum(max(num_rows(sweep.run(run.id)) - known.get(run.id, 0), 0) for run in sweep.plan.runs)

    def is_current(self, sweep: StartedSweep, tracking_uri: str | None) -> bool:
        """True if a server has every row and state of the plan's runs, and the fit of every variant that has ended.

        Without a URI, the server is the home folder's own store.
        """
        known = self.of(tracking_uri or default_tracking_uri(sweep.home))
        return (
            known.num_left(sweep) == 0
            and all(known._has_told(sweep, variant) for variant in sweep.plan.variants)
            and all(known.has_fit(name, basis) for name, basis in fit_bases(sweep).items())
        )

    def _has_told(self, sweep: StartedSweep, variant: PlannedVariant) -> bool:
        """True if MLflow's tags of a variant and of its runs, and the states of the runs, are up to date."""
        synced = self.variants.get(variant.name)
        if synced is not None and synced.described != describe(sweep, variant).fingerprint:
            return False
        return all(
            known.state == written_state(sweep.run(run.id))
            and known.described == describe(sweep, variant, run).fingerprint
            for run in variant.runs
            if (known := self.runs.get(run.id))
        )

    def has_fit(self, name: str, basis: str) -> bool:
        """True if MLflow has the fit of a variant on this basis."""
        known = self.variants.get(name)
        return known is not None and known.fit == basis


def compared_runs(sweep: StartedSweep, variant: PlannedVariant) -> list[RunFolder]:
    """The runs behind a variant's fit and its difference from the reference."""
    return [sweep.run(run.id) for side in _sides(sweep.plan, variant) for run in side.runs]


def _sides(plan: Plan, variant: PlannedVariant) -> list[PlannedVariant]:
    return [side for side in plan.variants if side.name in (variant.name, plan.reference)]


def fit_bases(sweep: StartedSweep) -> dict[str, str]:
    """The basis of each variant's fit, for variants whose runs and reference have finished.

    A basis is 12 hex digits that change whenever fit, comparison or figure may: for example the window, budget or rows.
    All seeds of a sweep are evidence on the run-to-run spread, so once the last has ended, every fit depends on all
    rows.
    """
    plan = sweep.plan
    rows = {run.id: num_rows(sweep.run(run.id)) for run in plan.runs if has_ended(sweep.run(run.id), plan)}
    is_over = len(rows) == len({run.id for run in plan.runs})
    bases = {}
    for variant in plan.variants:
        ids = [run.id for side in _sides(plan, variant) for run in side.runs]
        if rows.keys() >= set(ids):
            told = {
                "window": [plan.fit_from_gpu_hours, plan.fit_to_gpu_hours],
                "budget": plan.budget_gpu_hours,
                "rows": rows if is_over else {run_id: rows[run_id] for run_id in ids},
            }
            bases[variant.name] = fingerprint(told)
    return bases


def default_tracking_uri(home: Home) -> str:
    """URI of the SQLite store in the home folder."""
    return sqlite_url(home.path / "mlflow.db")


def read_ledger(sweep: StartedSweep) -> Ledger:
    return Ledger.read(sweep.folder / "sync.json")


def newest_ledger(home: Home) -> Ledger | None:
    """The ledger of the newest sweep in the home folder's own store; None if there is none."""
    uri = default_tracking_uri(home)
    ledgers = (Ledger.read(home.sweep(name) / "sync.json").of(uri) for name in home.sweep_names())
    return next((ledger for ledger in ledgers if ledger.experiment_id), None)


def written_state(folder: RunFolder) -> str:
    """The state that a run has written about itself; empty before it has started."""
    return folder.read_status().state


def has_ended(folder: RunFolder, plan: Plan) -> bool:
    """True if a run will write no more rows; a run that finished below the budget resumes."""
    status = folder.read_status()
    if not status.has_started or not State(status.state).ends_attempt:
        return False
    return not (status.state == State.DONE and status.compute_gpu_hours < plan.budget_gpu_hours)


def num_rows(folder: RunFolder) -> int:
    """Number of whole lines in the run log."""
    try:
        with folder.metrics.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0


def describe(sweep: StartedSweep, variant: PlannedVariant, run: PlannedRun | None = None) -> Description:
    """The current tags and params of a variant, or of one of its runs."""
    recipe = stored_recipe(sweep.run(variant.runs[0].id))  # the same for all seeds; empty until the first has started
    runs = [run] if run else variant.runs
    versions = [version for one in runs for version in sweep.run(one.id).read_status().code_versions]
    return description_of(sweep.plan, variant, versions, recipe, run)


def stored_recipe(folder: RunFolder) -> dict[str, Any]:
    """The resolved recipe of a run; empty if the run has not started or its file cannot be read."""
    try:
        recipe = json.loads((folder.path / "recipe.json").read_bytes())["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return recipe if isinstance(recipe, dict) else {}
