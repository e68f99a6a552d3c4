"""What the page reads, kept until what it came from changes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from ablations.home.home import Home
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import HEARTBEAT_LIMIT_S, State
from ablations.running.ending import all_ended
from ablations.status.rows import RunRow
from ablations.tracking.scalars import row_scalars
from ablations.verdict.results import FittedRun, FittedVariant, Results, compared, read_results
from ablations.verdict.words import numbers
from scalerl.run.metrics import read_rows

MAX_FITS = 256
"""Kept in memory, 0.2 MB each."""
STATUS_FIELDS = ("state", "message", "code_versions")
"""What of status.json is in the results of a run; its heartbeat changes every second."""
Stamp = tuple[int, int]
"""Time and size of a file: a new one means new content."""


def load_results(sweep: StartedSweep) -> Results:
    """Curves, fits and comparison of a sweep; a run is read and fitted again when its run log has grown."""
    return compared(sweep, tuple(_load_variant(sweep, variant) for variant in sweep.plan.variants))


def may_change(sweep: StartedSweep, rows: Sequence[RunRow], *, now: float) -> bool:
    """Whether a run trains, or is still to be trained by a sweep that shows signs of life; `now` is a Unix time."""
    if any(row.state.pid is not None for row in rows):
        return True
    states = {row.state.state for row in rows}
    if State.RUNNING in states or all_ended(sweep, list(rows)):
        return State.RUNNING in states
    beats = [sweep.run(row.id).read_status().heartbeat for row in rows]
    return now - max(beats) < HEARTBEAT_LIMIT_S or sweep.is_at_work


def load_metrics(home: Home, run_id: str) -> pd.DataFrame:
    """The optimiser steps of a run, one per row, with columns step, wall_s and every number that was logged.

    ValueError when the run log is damaged.
    """
    path = home.run(run_id).metrics
    return _metrics(path, stamp(path))


def comparison_csv(results: Results) -> bytes:
    """The comparison with all its numbers, one line per variant."""
    return pd.DataFrame([numbers(results, variant) for variant in results.variants]).to_csv(index=False).encode()


def stamp(path: Path) -> Stamp:
    """The file's stamp; (0, 0) without a file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _load_variant(sweep: StartedSweep, variant: PlannedVariant) -> FittedVariant:
    runs = tuple(_load_run(sweep, variant, run) for run in variant.runs)
    return FittedVariant(name=variant.name, overrides=variant.overrides, runs=runs)


def _load_run(sweep: StartedSweep, variant: PlannedVariant, run: PlannedRun) -> FittedRun:
    folder = sweep.run(run.id)
    status = folder.read_status()
    alone = replace(sweep.plan, reference=variant.name, variants=(replace(variant, runs=(run,)),))
    known = {field: getattr(status, field) for field in STATUS_FIELDS}
    return _fitted_run(sweep.home.path, alone, stamp(folder.metrics), known)


# All arguments are the key: an entry is never used again once a file or the window has changed.
@st.cache_resource(max_entries=MAX_FITS, show_spinner="Fitting the curves …")
def _fitted_run(home: Path, alone: Plan, written: Stamp, status: dict[str, Any]) -> FittedRun:
    """The only run of a plan."""
    (fitted,) = read_results(StartedSweep(home=Home(home), plan=alone)).runs
    return fitted


@st.cache_resource(max_entries=64, show_spinner="Reading the run log …")
def _metrics(path: Path, written: Stamp) -> pd.DataFrame:
    rows = [{"step": row["step"], "wall_s": row["wall_s"]} | row_scalars(row) for row in read_rows(path, "train")]
    return pd.DataFrame(rows)
