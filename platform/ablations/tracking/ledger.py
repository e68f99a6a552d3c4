"""What MLflow has of a sweep as far as is known here: `sync.json`, and how it compares with the run folders.

{"tracking_uri": "sqlite:///...",
 "runs": {"3f0c9a1b2d4e": {"mlflow_id": "8c1f...", "parent_id": "02ab...", "num_rows": 120, "state": "done"}},
 "variants": {"scalerl": {"mlflow_id": "02ab...", "overrides": "44136fa355b3", "fit": "9d0c71e2b85a"}}}
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ablations.home.home import Home
from ablations.home.plan import Plan, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from scalerl.run.run_folder import RunFolder, write_atomically

NO_FIT = ""
UNKNOWN = "unknown"
"""The state of a run that MLflow was not told of yet."""


@dataclass(frozen=True, kw_only=True)
class SyncedRun:
    """A run of a seed: its id and its parent's in MLflow, the rows of its run log and the state that MLflow has."""

    mlflow_id: str
    parent_id: str
    num_rows: int
    state: str


@dataclass(frozen=True, kw_only=True)
class SyncedVariant:
    """The parent run of a variant."""

    mlflow_id: str
    overrides: str
    """`fingerprint` of the overrides it has as parameters."""
    fit: str = NO_FIT
    """`fit_basis` of the fit that MLflow has."""


@dataclass(kw_only=True)
class Ledger:
    """The content of `sync.json`, runs by run id and variants by name; it is of one server."""

    path: Path
    tracking_uri: str = ""
    runs: dict[str, SyncedRun] = field(default_factory=dict)
    variants: dict[str, SyncedVariant] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """The ledger in a file; an empty one when the file is missing or broken, since MLflow can be asked again."""
        try:
            content = json.loads(path.read_bytes())
            return cls(
                path=path,
                tracking_uri=content["tracking_uri"],
                runs={run_id: SyncedRun(**run) for run_id, run in content["runs"].items()},
                variants={name: SyncedVariant(**variant) for name, variant in content["variants"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path=path)

    def of(self, tracking_uri: str) -> "Ledger":
        """What is known of a server: this ledger, or an empty one in its place when this is of another server."""
        return self if self.tracking_uri == tracking_uri else Ledger(path=self.path, tracking_uri=tracking_uri)

    def note_run(self, run_id: str, run: SyncedRun) -> None:
        """Keep what is known of a run."""
        if self.runs.get(run_id) != run:
            self.runs[run_id] = run
            self._write()

    def note_variant(self, name: str, variant: SyncedVariant) -> None:
        """Keep what is known of a variant."""
        if self.variants.get(name) != variant:
            self.variants[name] = variant
            self._write()

    def _write(self) -> None:
        content = {
            "tracking_uri": self.tracking_uri,
            "runs": {run_id: asdict(run) for run_id, run in self.runs.items()},
            "variants": {name: asdict(variant) for name, variant in self.variants.items()},
        }
        write_atomically(self.path, json.dumps(content, indent=1).encode())

    def num_left(self, sweep: StartedSweep) -> int:
        """Rows of the sweep's run logs that MLflow has not."""
        return sum(self._num_left(sweep.run(run.id)) for run in sweep.plan.runs)

    def _num_left(self, folder: RunFolder) -> int:
        known = self.runs.get(folder.path.name)
        # A run that resumes from its last checkpoint has fewer rows than before until it is there again.
        return max(num_rows(folder) - (known.num_rows if known else 0), 0)

    def is_current(self, sweep: StartedSweep, tracking_uri: str | None) -> bool:
        """Whether a server has every row and state of the plan's runs, and the fit of every variant that has ended.

        The server is the home folder's own store when no URI is given.
        """
        known = self.of(tracking_uri or default_tracking_uri(sweep.home))
        return (
            known.num_left(sweep) == 0
            and all(run.state == written_state(sweep.run(run_id)) for run_id, run in known._runs_of(sweep.plan))
            and not any(known.lacks_fit(sweep, variant) for variant in sweep.plan.variants)
        )

    def _runs_of(self, plan: Plan) -> list[tuple[str, SyncedRun]]:
        planned = {run.id for run in plan.runs}
        return [(run_id, run) for run_id, run in self.runs.items() if run_id in planned]

    def lacks_fit(self, sweep: StartedSweep, variant: PlannedVariant) -> bool:
        """Whether a variant and the reference have finished and MLflow's fit is out of date."""
        if not all(has_ended(folder, sweep.plan) for folder in compared_runs(sweep, variant)):
            return False
        known = self.variants.get(variant.name)
        return known is None or known.fit != fit_basis(sweep, variant)


def compared_runs(sweep: StartedSweep, variant: PlannedVariant) -> list[RunFolder]:
    """The runs that a variant's fit and its difference from the reference rest on."""
    sides = [side for side in sweep.plan.variants if side.name in (variant.name, sweep.plan.reference)]
    return [sweep.run(run.id) for side in sides for run in side.runs]


def fit_basis(sweep: StartedSweep, variant: PlannedVariant) -> str:
    """12 hex digits that change when a variant's fit, comparison or figure may: with its window, budget and rows."""
    plan = sweep.plan
    return fingerprint(
        {
            "window": [plan.fit_from_gpu_hours, plan.fit_to_gpu_hours],
            "budget": plan.budget_gpu_hours,
            "rows": {folder.path.name: num_rows(folder) for folder in compared_runs(sweep, variant)},
        }
    )


def default_tracking_uri(home: Home) -> str:
    """The SQLite store in the home folder."""
    return f"sqlite:///{home.path.absolute() / 'mlflow.db'}"


def read_ledger(sweep: StartedSweep) -> Ledger:
    """The ledger of a sweep."""
    return Ledger.read(sweep.folder / "sync.json")


def written_state(folder: RunFolder) -> str:
    """The state a run has written of itself; empty before it has started."""
    return folder.read_status().state


def has_ended(folder: RunFolder, plan: Plan) -> bool:
    """Whether a run writes no more; without a total to share, a run that is done with less than the budget resumes."""
    status = folder.read_status()
    budget = plan.budget_gpu_hours if plan.total_gpu_hours is None else 0.0
    if not status.has_started or not State(status.state).ends_attempt:
        return False
    return not (status.state == State.DONE and status.compute_gpu_hours < budget)


def num_rows(folder: RunFolder) -> int:
    """Whole lines of the run log."""
    try:
        with folder.metrics.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0


def fingerprint(content: dict[str, Any]) -> str:
    """12 hex digits that change when plain data does."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
