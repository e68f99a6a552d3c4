"""The content of a sweep for MLflow, and `sync.json`: what MLflow had of it when the last push ended.

{"tracking_uri": "sqlite:///...", "experiment_id": "1", "content": "9d0c71e2b85a",
 "runs": {"3f0c9a1b2d4e": {"mlflow_id": "8c1f...", "num_rows": 120}}}

MLflow itself says what it has, so a lost or old note costs a look there, and nothing is pushed twice.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from ablations.files.checked_json import checked
from ablations.files.database import sqlite_url
from ablations.home.home import Home
from ablations.home.notes import notes_of_run, notes_of_sweep, notes_of_variant
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.tracking.descriptions import Description, description_of, fingerprint, tags_of_notes
from scalerl.credentials import values_without_secrets, without_secrets
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import RunFolder, write_atomically


@dataclass(frozen=True, kw_only=True)
class SyncedRun:
    """A run in MLflow: its id there, and how many rows of its log MLflow has."""

    mlflow_id: str
    num_rows: int


@dataclass(frozen=True, kw_only=True)
class SyncNote:
    """The content of `sync.json`, for one server."""

    tracking_uri: str = ""
    """The server's URL, without user and password."""
    experiment_id: str = ""
    content: str = ""
    """`content_of` the sweep if MLflow has all of it, else empty."""
    runs: Mapping[str, SyncedRun] = field(default_factory=dict)

    def of(self, tracking_uri: str) -> "SyncNote":
        """The note if it is about this server, else an empty one."""
        shown = without_secrets(tracking_uri)
        return self if self.tracking_uri == shown else SyncNote(tracking_uri=shown)

    def write(self, sweep: StartedSweep) -> None:
        write_atomically(sweep.folder / "sync.json", json.dumps(asdict(self), indent=1).encode())

    def num_left(self, sweep: StartedSweep) -> int:
        """Number of rows in the sweep's run logs that MLflow lacks."""
        known = {run_id: run.num_rows for run_id, run in self.runs.items()}
        # A run that resumes from its last checkpoint has fewer rows than before until it catches up.
        return sum(max(num_rows(sweep.run(run.id)) - known.get(run.id, 0), 0) for run in sweep.plan.runs)


def read_note(home: Home, sweep: str) -> SyncNote:
    """The note of a sweep; empty if the file is missing, damaged or from an earlier version."""
    try:
        note = checked(parsed_json((home.sweep(sweep) / "sync.json").read_bytes()), TypeAdapter(SyncNote))
    except (OSError, ValueError):
        return SyncNote()
    return replace(note, tracking_uri=without_secrets(note.tracking_uri))


def is_current(sweep: StartedSweep, tracking_uri: str | None) -> bool:
    """True if a server has everything of a sweep. Without a URI, the server is the home folder's own store."""
    note = read_note(sweep.home, sweep.name).of(tracking_uri or default_tracking_uri(sweep.home))
    return bool(note.content) and note.content == content_of(sweep)


def newest_experiment(home: Home) -> str:
    """The id of the newest sweep's experiment in the home folder's own store; empty if there is none."""
    uri = default_tracking_uri(home)
    ids = (read_note(home, name).of(uri).experiment_id for name in home.sweep_names())
    return next(filter(None, ids), "")


def content_of(sweep: StartedSweep) -> str:
    """12 hex digits that change whenever MLflow's view of the sweep has to."""
    runs = {
        run.id: [num_rows(sweep.run(run.id)), written_state(sweep.run(run.id)), describe(sweep, one, run).fingerprint]
        for one in sweep.plan.variants
        for run in one.runs
    }
    variants = [describe(sweep, one).fingerprint for one in sweep.plan.variants]
    said = tags_of_notes(notes_of_sweep(sweep))
    return fingerprint({"runs": runs, "variants": variants, "fits": fit_bases(sweep)} | said)


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
    described = description_of(sweep.plan, variant, versions, recipe, run)
    notes = notes_of_run(sweep.home, run.id) if run else notes_of_variant(sweep, variant.name)
    return replace(described, tags=described.tags | tags_of_notes(notes))


def stored_recipe(folder: RunFolder) -> dict[str, Any]:
    """The resolved recipe of a run without passwords; empty if the run has not started or its file cannot be read."""
    try:
        recipe = parsed_json((folder.path / "recipe.json").read_bytes())["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return values_without_secrets(recipe) if isinstance(recipe, dict) else {}
