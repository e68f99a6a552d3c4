"""Current remarks on the runs of a sweep, from their states and the fits saved beside them.

Nothing is fitted here, so that the table of a large sweep stays quick: a collapse or a fall is known from the last
`platform compare`, `platform sweep` or page that fitted the run.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ablations.findings.remark import Remark
from ablations.findings.remarks import remarks_of, warnings_of_run
from ablations.fit.law_fit import CurveSet
from ablations.fit.options import FitSettings
from ablations.home.labels import PlannedRun
from ablations.home.started_sweep import StartedSweep
from ablations.readings.fitted_run import FittedRun, fitted_run
from ablations.readings.run_reading import RunReading, read_kept
from ablations.status.rows import RunRow


def remarked(sweep: StartedSweep, rows: Sequence[RunRow]) -> tuple[list[RunRow], tuple[Remark, ...]]:
    """The rows, with collapses and falls among their warnings, and all remarks, the most serious first."""
    settings = sweep.plan.fit_settings
    runs = [without_draws(run_of_row(sweep, row, settings)) for row in rows]
    said = [
        with_warnings(row, warnings_of_run(run, sweep.plan.hours_name)) for row, run in zip(rows, runs, strict=True)
    ]
    return said, remarks_of(sweep.plan, runs)


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
