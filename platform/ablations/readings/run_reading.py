"""The contents of a run log with its fit: read once, and saved beside the run.

A reading is kept in the run's folder `readings/` (`kept`), in a file named by everything it depends on: the run, its
log, the checkpoint that vouches for the log, and its recipe (size and time of each), the settings of the fit, the name,
and the code of the fit. A damaged log is read each time, since its message names the file. If the folder cannot be
written, in the home folder of another user or on a full disk, the log is read and fitted each time, and `unkept` says
why.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import scalerl
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.home.source import JUST_NOW_NS, SOURCE_FILE, source_of
from ablations.readings.hours import Hours, HoursSoFar
from ablations.readings.kept import code_in, kept_tree, read_kept_tree
from ablations.readings.task_curves import COUNTERS, EvaluationRows
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import log_fault, read_rows

READINGS = "readings"
"""Folder of saved readings inside the run's folder."""
MOST_KEPT = 6
"""Maximum number of saved readings of one run; the newest stay. Readings differ by settings, tasks, and names in other
sweeps.
"""
RECIPE = "recipe.json"
BEHIND = ("metrics.jsonl", "checkpoint/manifest.json", RECIPE, SOURCE_FILE)
"""Files of a run that its reading depends on."""
BEGUN_WITH = ("model", "tasks", "warm_start")
EVERY_ROW = ("kind", "step", "compute_gpu_hours")
Stamp = tuple[int, int] | None
"""Size in bytes and time in ns of a file; None if it does not exist."""
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
    """The counters of `COUNTERS` that every evaluation logs, one number for each compute."""
    is_sound: bool = True
    """False if the log cannot be used, so that no reading is saved."""
    oddities: tuple[str, ...] = ()
    """Sentences of the fit about readings that look wrong; only for an imported run."""
    unkept: str = ""
    """The reason why the reading could not be saved, such as "No space left on device"; empty in a saved reading."""


def kept_reading(folder: RunFolder, name: str, settings: FitSettings) -> RunReading:
    """The saved reading of the log, or else a new one, which is then saved."""
    found, unkept = kept_tree(
        _path(folder, name, settings),
        lambda: read_log(folder, name, settings),
        RunReading,
        most=MOST_KEPT,
        is_final=lambda reading: reading.is_sound and is_at_rest(folder.metrics),
    )
    return replace(found, unkept=unkept) if unkept else found


def read_kept(folder: RunFolder, name: str, settings: FitSettings) -> RunReading | None:
    """The saved reading of the log in its current state; None if there is none or it cannot be read."""
    if not (folder.path / READINGS).exists():
        return None
    return read_kept_tree(_path(folder, name, settings), RunReading)


def read_log(folder: RunFolder, name: str, settings: FitSettings) -> RunReading:
    """The curve `name` with its fit, cost and hours; if the log cannot be used, the reason instead of a fit."""
    made_with = recipe_and_seed(folder)
    measured, spent, cost = EvaluationRows(), HoursSoFar(masks=masks_tokens(made_with)), 0.0
    curve, fit, reason, is_sound = None, None, "", True
    oddities: tuple[str, ...] = ()
    try:
        for number, row in enumerate(read_rows(folder.metrics), start=1):
            if missing := [name for name in EVERY_ROW if name not in row]:
                raise ValueError(f"{folder.metrics}:{number}: a row without {missing[0]}")
            # The row of an evaluation may come after those of later steps.
            cost = max(cost, row["compute_gpu_hours"])
            measured.add(row)
            spent.add(row)
        if fault := log_fault(folder.metrics, folder.checkpoint):
            raise ValueError(f"{fault}; restore it, or delete {folder.path} and start the sweep again")
        curve = measured.curve(name, settings.task)
        source = source_of(folder)
        if curve is not None:
            curve = replace(curve, start=start_of(made_with) if source is None else source.start)
            fit, reason = try_fit(curve, replace(settings, fit_to=_reading_at(curve, settings.fit_to)))
        if source is not None:  # steps after its last reading are not compared
            cost = 0.0 if curve is None else float(curve.compute[-1])
            oddities = tuple(fit.oddities) if fit else ()
    except ValueError as error:
        reason, is_sound = str(error), False
    return RunReading(
        curve=curve,
        fit=fit,
        reason=reason,
        cost_gpu_hours=cost,
        hours=spent.hours(),
        counts=counts_of(measured) if is_sound else {},
        is_sound=is_sound,
        oddities=oddities,
    )


def recipe_and_seed(folder: RunFolder) -> tuple[AnyRecipe, int] | None:
    """The recipe of a run and its seed; None if they cannot be read (callers that need them report it)."""
    try:
        return folder.read_recipe()
    except (OSError, ValueError):
        return None


def masks_tokens(made_with: tuple[AnyRecipe, int] | None) -> bool:
    """True if the correction of this recipe leaves tokens out of the loss; False if the recipe is unknown."""
    recipe = made_with and made_with[0]
    return isinstance(recipe, ResolvedRecipe) and recipe.correction.type in ("mask", "trust_region")


def start_of(made_with: tuple[AnyRecipe, int] | None) -> str:
    """The start of a run, by its recipe and seed: equal for runs with the same model, tasks, warm start and seed; "" if
    unknown."""
    if made_with is None:
        return ""
    recipe, seed = made_with
    if isinstance(recipe, CommandRecipe):  # a setting of a program may change its start
        return ""
    content = [recipe.canonical(*BEGUN_WITH), recipe.generation.thinks, seed]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def counts_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The counters of the evaluations among these rows: compute, and the others that all of them have.

    If several evaluations share one compute, as those of several tasks do, the first is used.
    """
    evaluations: dict[float, tuple[float | None, ...]] = {}
    for row in rows:
        if row["kind"] == "eval":
            evaluations.setdefault(row["compute_gpu_hours"], tuple(row.get(name) for name in COUNTERS))
    columns = zip(COUNTERS, zip(*evaluations.values(), strict=True), strict=False)
    return {name: np.array(values, dtype=float) for name, values in columns if None not in values}


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
    content = [code_of_readings(), folder.path.name, name, vars(settings), stamps_behind(str(folder.path))]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    return folder.path / READINGS / f"{key}.msgpack"


def stamps_behind(folder: str) -> list[Stamp]:
    """Size and time of each file of a run that its reading depends on."""
    return [stamp(f"{folder}/{name}") for name in BEHIND]


def stamp(path: Path | str) -> Stamp:
    """Size and time of a file, which change with its content; None if it does not exist."""
    try:
        found = os.stat(path)
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
