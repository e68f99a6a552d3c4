"""Fits of every run of a sweep, or of every curve of a CSV file, before any comparison."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ablations.fit.curve_file import read_curves
from ablations.fit.options import FitSettings
from ablations.home.labels import run_name
from ablations.home.started_sweep import StartedSweep
from ablations.readings.fitted_run import FittedCurve, FittedRun, fitted_run
from ablations.readings.readings_together import Done, readings_of_runs
from ablations.readings.run_reading import try_fit
from ablations.readings.task_curves import with_task
from ablations.readings.wanted import WantedRun


def fit_file(path: Path, settings: FitSettings) -> list[FittedCurve]:
    """A fit of every curve of a CSV file; AblationsError if the file cannot be used."""
    fitted = []
    for curve in read_curves(path):
        fit, reason = try_fit(curve, settings)
        fitted.append(FittedCurve(name=curve.name, curve=curve, fit=fit, reason=reason))
    return fitted


def fit_sweep(sweep: StartedSweep, *, done: Done | None = None, **changes: Any) -> list[FittedRun]:
    """A fit of every run of a sweep, with the plan's settings or the given ones of `FitSettings`.

    `done` receives the number of fitted runs and the number to fit.
    """
    settings = replace(with_task(sweep, changes.get("task")).plan.fit_settings, **changes)
    return fitted_runs(sweep, settings, done)


def fitted_runs(sweep: StartedSweep, settings: FitSettings, done: Done | None) -> list[FittedRun]:
    """The runs in the plan's order."""
    runs = [(sweep.run(run.id), variant.name, run) for variant in sweep.plan.variants for run in variant.runs]
    wanted = [
        WantedRun(folder=folder, name=run_name(variant, run.seed), settings=settings) for folder, variant, run in runs
    ]
    readings = readings_of_runs(wanted, done=done)
    return [
        fitted_run(folder, variant, run, reading)
        for (folder, variant, run), reading in zip(runs, readings, strict=True)
    ]
