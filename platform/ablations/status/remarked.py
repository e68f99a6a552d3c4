"""Current remarks on the runs of a sweep, from their states and the fits saved beside them.

Nothing is fitted here, so that the table of a large sweep stays quick: a collapse or a fall is known from the last
`platform compare`, `platform sweep` or page that fitted the run. A fit has a hundred kilobytes, so for many runs the
remarks are kept too.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ablations.findings.remark import Remark
from ablations.findings.remarks import remarks_of, warnings_of_run
from ablations.fit.law_fit import CurveSet
from ablations.fit.options import FitSettings
from ablations.home.labels import PlannedRun
from ablations.home.source import JUST_NOW_NS
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun, fitted_run
from ablations.readings.kept import code_in, kept_tree
from ablations.readings.run_reading import READINGS, RunReading, code_of_readings, read_kept, stamp, stamps_behind
from ablations.status.rows import RunRow

REMARKS = "remarks"
"""Folder of kept remarks inside the sweep's folder."""
LEAST_ROWS = 500
"""Number of runs from which remarks are kept; fewer fits are read in a third of a second."""


@dataclass(frozen=True, kw_only=True)
class RowRemarks:
    """Remarks on the rows of a sweep: `RowRemarks(warnings=((), ("the pass rate fell (...)",)), remarks=(...))`."""

    warnings: tuple[tuple[str, ...], ...]
    """Of each row."""
    remarks: tuple[Remark, ...]


def remarked(sweep: StartedSweep, rows: Sequence[RunRow]) -> tuple[list[RunRow], tuple[Remark, ...]]:
    """The rows, with collapses and falls among their warnings, and all remarks, the most serious first."""
    found = said_on(sweep, rows) if len(rows) < LEAST_ROWS else kept_said(sweep, rows)
    return [with_warnings(row, some) for row, some in zip(rows, found.warnings, strict=True)], found.remarks


def kept_said(sweep: StartedSweep, rows: Sequence[RunRow]) -> RowRemarks:
    """What `said_on` says, kept in the sweep's folder while nothing behind it changes."""
    plan, runs, newest = sweep.plan, str(sweep.home.path / "runs"), 0
    digest = hashlib.sha256(f"{code_of_remarks()} {replace(plan, variants=())!r}".encode())
    for row in rows:
        folder, state = f"{runs}/{row.id}", row.state
        stamps = [*stamps_behind(folder), stamp(f"{folder}/{READINGS}")]
        newest = max([newest, *(one[1] for one in stamps if one)])
        said = (state.state, state.message, state.warnings, state.compute_gpu_hours, row.status.code_versions)
        digest.update(repr((row.id, row.variant, row.seed, said, stamps)).encode())
    is_at_rest = time.time_ns() - newest > JUST_NOW_NS and all(row.state.state != State.RUNNING for row in rows)
    found, _ = kept_tree(
        sweep.folder / REMARKS / f"{digest.hexdigest()[:16]}.msgpack",
        lambda: said_on(sweep, rows),
        RowRemarks,
        most=1,
        is_final=lambda _: is_at_rest,
    )
    return found


@cache
def code_of_remarks() -> str:
    """SHA-256 of the source that makes remarks of readings and states."""
    root = Path(__file__).parents[1]
    return code_in(
        [Path(__file__), *sorted(root.glob("findings/*.py")), *sorted(root.glob("home/*.py"))], code_of_readings()
    )


def said_on(sweep: StartedSweep, rows: Sequence[RunRow]) -> RowRemarks:
    """The warnings on each run, and all remarks, from the states and the fits kept beside the runs."""
    settings = sweep.plan.fit_settings
    runs = [without_draws(run_of_row(sweep, row, settings)) for row in rows]
    warnings = tuple(warnings_of_run(run, sweep.plan.hours_name) for run in runs)
    return RowRemarks(warnings=warnings, remarks=remarks_of(sweep.plan, runs))


def without_draws(run: FittedRun) -> FittedRun:
    """The run without the draws and most readings of its fit, which no remark needs: a gigabyte for 10,000 runs."""
    if run.fit is None or run.curve is None:
        return run
    none, read = np.empty(0), run.fit.readings
    fit = replace(
        run.fit,
        curve=run.curve,
        readings=replace(read, compute=read.compute[[0, -1]], score=read.score[[0, -1]]),  # the window
        residuals=none,
        draws=CurveSet(A=none, B=none, C_mid=none, R_0=none),
        ceiling=replace(run.fit.ceiling, draws=none),
        alternatives=replace(run.fit.alternatives, others=()),
    )
    return replace(run, fit=fit, counts={}, hours=None)


def with_warnings(row: RunRow, warnings: tuple[str, ...]) -> RunRow:
    """The row with these warnings instead of its own."""
    return row if row.state.warnings == warnings else replace(row, state=replace(row.state, warnings=warnings))


def run_of_row(sweep: StartedSweep, row: RunRow, settings: FitSettings | None = None) -> FittedRun:
    """The run with its fit saved with these settings, by default the plan's, in the state reported by the sweep and
    Slurm."""
    folder, state = sweep.run(row.id), row.state
    reading = read_kept(folder, row.name, settings or sweep.plan.fit_settings) or RunReading(
        curve=None, fit=None, reason="", cost_gpu_hours=state.compute_gpu_hours, hours=None
    )
    run = fitted_run(folder, row.variant, PlannedRun(seed=row.seed, id=row.id), reading, row.status)
    return replace(run, state=state.state, message=state.message, warnings=state.warnings)
