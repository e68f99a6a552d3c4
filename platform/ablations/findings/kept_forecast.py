"""Forecasts of sweeps, kept beside each sweep in files named after everything they depend on.

A forecast depends on the readings of its runs, and through the run-to-run spread on those of all other sweeps in the
home folder. Both are fixed by the files of the home folder, of which size and time are part of the name, as are the
plan, the budgets and the source of the method. So a reading that is added at the same compute, another sweep of the
same runs, or another spread gives another name, and nothing has to be fitted or even read to know it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import scalerl
from ablations.findings.sweep_forecast import SweepForecast
from ablations.home.home import Home
from ablations.home.notes import NOTES_FILE
from ablations.home.source import JUST_NOW_NS
from ablations.home.started_sweep import StartedSweep
from ablations.readings.kept import code_in, kept_tree
from ablations.readings.run_reading import Stamp, stamp

FORECASTS = "forecasts"
"""Folder inside the sweep's folder."""
MOST_FORECASTS = 12
FILES_OF_A_RUN = ("metrics.jsonl", "checkpoint/manifest.json", "recipe.json", "status.json", "source.json")


def kept_forecast(
    sweep: StartedSweep, budgets_gpu_hours: Sequence[float], score: float | None, make: Callable[[], SweepForecast]
) -> SweepForecast:
    """The saved forecast of a sweep at these budgets, or else the one that `make` returns, which is then saved.

    The task is that of the plan. A forecast is not saved while files of the home folder change.
    """
    stamps = [*_stamps(sweep.home)]
    content = [_code_of_forecasts(), asdict(sweep.plan), [*budgets_gpu_hours], score, stamps]
    key = hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()[:16]
    newest = max((found[1] for _, of_files in stamps for found in of_files if found), default=0)
    found, _ = kept_tree(
        sweep.folder / FORECASTS / f"{key}.msgpack",
        make,
        SweepForecast,
        most=MOST_FORECASTS,
        is_final=lambda _: time.time_ns() - newest > JUST_NOW_NS and stamps == [*_stamps(sweep.home)],
    )
    return found


def _stamps(home: Home) -> Iterator[tuple[str, list[Stamp]]]:
    """Every run and every file of a sweep in the home folder but its notes, with size and time of its files."""
    for run_id in home.run_ids():
        folder = home.run(run_id).path
        yield run_id, [stamp(folder / name) for name in FILES_OF_A_RUN]
    for path in sorted(home.sweeps.glob("*/*")):
        if path.is_file() and path.name != NOTES_FILE:
            yield f"{path.parent.name}/{path.name}", [stamp(path)]


@cache
def _code_of_forecasts() -> str:
    """SHA-256 of the source of both packages, and of their numeric libraries."""
    roots: list[Any] = [Path(__file__).parents[1], *scalerl.__path__]
    files = chain.from_iterable(sorted(Path(root).rglob("*.py")) for root in roots)
    return code_in(files, f"{np.__version__} {scipy.__version__}")
