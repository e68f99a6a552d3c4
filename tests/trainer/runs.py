"""Runs of tests: made, trained to one budget after the other, and read without what differs between executions."""

import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import WALL_FIELDS, read_rows
from scalerl.run.train import train

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["scalerl.run.loop"])  # seconds to import, once for all attempts


def new_run(path: Path, recipe: ResolvedRecipe, seed: int = 0) -> RunFolder:
    """A run that has not started."""
    folder = RunFolder(path)
    folder.create(recipe, seed)
    return folder


def trained(path: Path, recipe: ResolvedRecipe, warm_starts: Path, budgets: Sequence[float]) -> RunFolder:
    """A run of as many attempts as there are budgets."""
    folder = new_run(path, recipe)
    for budget in budgets:
        train(folder.path, budget_gpu_hours=budget, warm_starts=warm_starts)
    return folder


def rows_of(folder: RunFolder, kind: str | None = None) -> list[dict[str, Any]]:
    """The run log without the fields that differ between executions."""
    rows = read_rows(folder.metrics, kind=kind)
    return [{name: value for name, value in row.items() if name not in WALL_FIELDS} for row in rows]
