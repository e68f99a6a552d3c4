"""The contents of a run log with its fit: read once, and saved beside the run.

A reading is kept in the run's folder `readings/` (`kept`), in a file named by everything it depends on: the run, its
log, the checkpoint that vouches for the log, and its recipe (size and time of each), the settings of the fit, the name,
and the code of the fit. A damaged log is read each time, since its message names the file. If the folder cannot be
written, in the home folder of another user or on a full disk, the log is read and fitted each time, and `unkept` says
why.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import scalerl
from ablations.errors import AblationsError
from ablations.files.trees import NotATree, tree_bytes, tree_from_bytes
from ablations.fit.alternatives import Alternative, Alternatives
from ablations.fit.ceiling import Ceiling
from ablations.fit.curve import Curve
from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import FAMILIES
from ablations.fit.engine.posterior import Draws
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.readings import Readings
from ablations.fit.result import CurveSet, Fit
from ablations.readings.hours import Hours
from ablations.readings.kept import code_in, kept_tree, read_kept_tree
from ablations.readings.task_curves import curve_of
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import CommandRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import log_fault, read_rows

JUST_NOW_NS = 100_000_000
MOST_KEPT = 6
"""Limit on saved readings of one run, the newest ones: readings differ by settings, tasks, and names in other sweeps.
"""
RECIPE = "recipe.json"
BEGUN_WITH = ("model", "tasks", "warm_start")
EVERY_ROW = ("kind", "step", "compute_gpu_hours")
COUNTED = ("compute_gpu_hours", "step", "wall_s", "flops", "tokens")
"""Counters of evaluations, if logged."""
Stamp = tuple[int, int] | None
"""Size in bytes and time in ns of a file; None without one."""
DECIDING = (
    *("fit/**/*.py", "answers/*.py", "readings/*.py", "findings/repeated_runs.py"),
    *("files/trees.py", "errors.py", "nearest_name.py", "text.py"),
)
"""Platform source files that determine a reading."""
DECIDING_OF_TRAINER = ("run/run_log.py", "run/sealed_json.py", "evaluation/prompt_counts.py")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunReading:
    """The contents of a run log: `RunReading(curve=curve, fit=fit, reason="", cost_gpu_hours=1500.0, hours=hours)`."""

    curve: Curve | None
    fit: Fit | None
    reason: str
    """The reason why there is no fit; also empty for a log without an evaluation."""
    cost_gpu_hours: float
    hours: Hours | None
    counts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The counters of `COUNTED` that every evaluation has, one number per evaluation and one evaluation per compute."""
    is_sound: bool = True
    """False if the log cannot be used, so that no reading is saved."""
    oddities: tuple[str, ...] = ()
    """Sentences of the fit about readings that look wrong; only for a curve of another trainer."""
    unkept: str = ""
    """The reason why the reading could not be saved, such as "No space left on device"; empty in a saved reading."""


CLASSES = (
    RunReading,
    Curve,
    Fit,
    FitSettings,
    Readings,
    Anchor,
    CurveSet,
    Ceiling,
    Alternatives,
    Alternative,
    Draws,
    Hours,
)
NAMED = {family.name: family for family in FAMILIES}


def kept_reading(folder: RunFolder, name: str, settings: FitSettings) -> RunReading:
    """The saved reading of the log, or else a new one, which is then saved."""
    found, unkept = kept_tree(
        _path(folder, name, settings),
        lambda: read_log(folder, name, settings),
        RunReading,
        classes=CLASSES,
        named=NAMED,
        most=MOST_KEPT,
        is_final=lambda reading: reading.is_sound and is_at_rest(folder.metrics),
    )
    return replace(found, unkept=unkept) if unkept else found


def read_kept(folder: RunFolder, name: str, settings: FitSettings) -> RunReading | None:
    """The saved reading of the log in its current state; None if there is none or it cannot be read."""
    return read_kept_tree(_path(folder, name, settings), RunReading, CLASSES, NAMED)


def reading_bytes(reading: RunReading) -> bytes:
    """A reading as bytes, for the saved file and between processes."""
    return tree_bytes(reading, named=NAMED)


def reading_from_bytes(content: bytes) -> RunReading:
    """The inverse of `reading_bytes`; NotATree for any other content."""
    found = tree_from_bytes(content, classes=CLASSES, named=NAMED)
    if not isinstance(found, RunReading):
        raise NotATree(f"found {type(found).__name__}, not a reading")
    return found


def read_log(folder: RunFolder, name: str, settings: FitSettings) -> RunReading:
    """The curve `name` with its fit, cost and hours; if the log cannot be used, the reason instead of a fit."""
    rows: list[dict[str, Any]] = []
    curve, fit, reason, is_sound = None, None, "", True
    try:
        for number, row in enumerate(read_rows(folder.metrics), start=1):
            if missing := [name for name in EVERY_ROW if name not in row]:
                raise ValueError(f"{folder.metrics}:{number}: a row without {missing[0]}")
            rows.append(row)
        if fault := log_fault(folder.metrics, folder.checkpoint):
            raise ValueError(f"{fault}; restore it, or delete {folder.path} and start the sweep again")
        curve = curve_of(rows, name, settings.task)
        if curve is not None:
            curve = replace(curve, start=start_of(folder))
            fit, reason = try_fit(curve, replace(settings, fit_to=_reading_at(curve, settings.fit_to)))
    except ValueError as error:
        reason, is_sound = str(error), False
    return RunReading(
        curve=curve,
        fit=fit,
        reason=reason,
        # The row of an evaluation may come after those of later steps.
        cost_gpu_hours=max((row["compute_gpu_hours"] for row in rows), default=0.0),
        hours=Hours.of_rows(rows, masks=masks_tokens(folder)),
        counts=counts_of(rows) if is_sound else {},
        is_sound=is_sound,
    )


def masks_tokens(folder: RunFolder) -> bool:
    """True if the run's correction leaves tokens out of the loss; False if the recipe cannot be read."""
    try:
        recipe, _ = folder.read_recipe()
    except (OSError, ValueError):
        return False
    return isinstance(recipe, ResolvedRecipe) and recipe.correction.type in ("mask", "trust_region")


def start_of(folder: RunFolder) -> str:
    """The start of a run: equal for runs with the same model, tasks, warm start and seed; "" if unknown."""
    try:
        recipe, seed = folder.read_recipe()
    except (OSError, ValueError):  # callers that need the recipe report the error
        return ""
    if isinstance(recipe, CommandRecipe):  # a setting of the program may change its start
        return ""
    content = [recipe.canonical(*BEGUN_WITH), recipe.generation.thinks, seed]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def counts_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The counters of the evaluations among these rows: compute, and the others that all of them have.

    If several evaluations share one compute, as those of several tasks do, the first is used.
    """
    evaluations: dict[float, Mapping[str, Any]] = {}
    for row in rows:
        if row["kind"] == "eval":
            evaluations.setdefault(row["compute_gpu_hours"], row)
    found = evaluations.values()
    names = [name for name in COUNTED if found and all(row.get(name) is not None for row in found)]
    return {name: np.array([row[name] for row in found], dtype=float) for name in names}


def _reading_at(curve: Curve, compute: float) -> float:
    """Compute of the reading due at `compute`: the reading is taken at the first step that reaches its point."""
    due = curve.compute[curve.compute >= compute]
    return float(due[0]) if due.size else compute


def try_fit(curve: Curve, settings: FitSettings) -> tuple[Fit | None, str]:
    """The fit, or the reason why there is none."""
    try:
        return fit_with(curve, settings), ""
    except AblationsError as error:
        return None, str(error)


def is_at_rest(log: Path) -> bool:
    """True if any further change would show in the file's time, which some file systems round to milliseconds."""
    found = stamp(log)
    return found is not None and time.time_ns() - found[1] > JUST_NOW_NS


def _path(folder: RunFolder, name: str, settings: FitSettings) -> Path:
    """The file of a reading, named by the shortened SHA-256 of everything that determines the reading."""
    stamps = [stamp(path) for path in (folder.metrics, folder.checkpoint / "manifest.json", folder.path / RECIPE)]
    content = [code_of_readings(), folder.path.name, name, asdict(settings), stamps]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    return folder.path / "readings" / f"{key}.npz"


def stamp(path: Path) -> Stamp:
    """Size and time of a file, which change with its content; None without one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@cache
def code_of_readings() -> str:
    """SHA-256 of the source that turns logs into readings and readings into verdicts, and of its numeric libraries."""
    rooms = ((Path(__file__).parents[1], DECIDING), (Path(scalerl.__path__[0]), DECIDING_OF_TRAINER))
    found = [sorted(root.glob(pattern)) for root, patterns in rooms for pattern in patterns]
    assert all(found), "a file was renamed: correct DECIDING"
    return code_in(chain.from_iterable(found), f"{np.__version__} {scipy.__version__}")
