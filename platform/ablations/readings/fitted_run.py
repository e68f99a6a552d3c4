"""The curve of a run with its fit, or the reason why it has none, so that one bad run does not hide the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ablations.fit.curve import Curve
from ablations.fit.fitting import fits_by_cutoff
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.fit.words import in_words
from ablations.home.labels import run_name
from ablations.home.plan import PlannedRun
from ablations.home.source import is_imported
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State, state_of
from ablations.readings.hours import Hours
from ablations.readings.readings_together import Done, WantedRun, readings_of_runs
from ablations.readings.run_reading import RunReading, kept_reading
from ablations.readings.task_curves import with_task
from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus

FIT_KEYS = ("curve", "A", "A_lo", "A_hi", "B", "C_mid", "R_0", "fit_verdict", "points", "window")
"""Keys in every line of `platform fit --json`; a missing number is null."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedCurve:
    """A curve and its fit, or the reason why it has no fit.

    FittedCurve(name="loo-loss-s0", curve=curve, fit=None, reason="... a fit needs at least 6 beyond step 0")
    """

    name: str
    curve: Curve | None
    fit: Fit | None
    reason: str = ""

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self.fit.asymptote if self.fit else f'no fit: {self.reason}'}>"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: the fit, or the curve's name and the reason."""
        if self.fit is None:
            return dict.fromkeys(FIT_KEYS) | {"curve": self.name, "fit_verdict": "no fit", "reason": self.reason}
        return self.fit.to_json() | {"reason": ""}

    def explained(self) -> dict[str, Any]:
        """`to_json()` with the fit in words and A against the cut-off; without a fit, these are missing."""
        if self.fit is None:
            return self.to_json() | {"words": "", "cutoffs": []}
        shown = ("points", "A", "A_lo", "A_hi")
        cutoffs = [
            {"fit_from": fit_from} | {name: getattr(fit, name) for name in shown} | {"fit_verdict": fit.verdict}
            for fit_from, fit in fits_by_cutoff(self.fit).items()
        ]
        return self.to_json() | {"words": in_words(self.fit), "cutoffs": cutoffs}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FittedRun(FittedCurve):
    """The fitted curve of one run of a sweep."""

    variant: str
    seed: int
    id: str
    cost_gpu_hours: float
    """Compute spent so far."""
    code_versions: tuple[str, ...]
    """Code versions of all attempts, in order."""
    warnings: tuple[str, ...] = ()
    """The last warnings of the trainer about its health and its files."""
    state: State | None = None
    """State of the run according to its own files; None for one that has not started, and for an imported run of which
    only the curve is known."""
    message: str = ""
    """The last message of its trainer."""
    hours: Hours | None = None
    """Device time by role and activity; None if the log has no times."""
    counts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Counters of the evaluations besides compute: `{"compute_gpu_hours": ..., "step": ..., "tokens": ...}`."""
    unkept: str = ""
    """The reason why the reading could not be saved; see `RunReading`."""


def read_run(folder: RunFolder, variant: str, run: PlannedRun, settings: FitSettings) -> FittedRun:
    """The run according to its log and status; without a fit, the reason.

    Readings are saved beside the log and reused while log, checkpoint and code stay the same.
    """
    return fitted_run(folder, variant, run, kept_reading(folder, run_name(variant, run.seed), settings))


def fitted_run(
    folder: RunFolder, variant: str, run: PlannedRun, reading: RunReading, status: RunStatus | None = None
) -> FittedRun:
    """Join the reading of a run's log with its status, by default that in its folder."""
    status = folder.read_status() if status is None else status
    is_empty, is_foreign = reading.curve is None and not reading.reason, is_imported(folder)
    return FittedRun(
        name=run_name(variant, run.seed),
        curve=reading.curve,
        fit=reading.fit,
        reason=_why_empty(status, is_foreign) if is_empty else reading.reason,
        variant=variant,
        seed=run.seed,
        id=run.id,
        cost_gpu_hours=reading.cost_gpu_hours,
        code_versions=status.code_versions,
        warnings=(*status.warnings, *reading.oddities),
        state=state_of(folder, status) if status.has_started and not is_foreign else _end_elsewhere(status),
        message="" if is_foreign else status.message,
        hours=reading.hours,
        counts=reading.counts,
        unkept=reading.unkept,
    )


def _end_elsewhere(status: RunStatus) -> State | None:
    """The state of an imported run, whose source may say that it ended by itself or by a rule."""
    return State.STOPPED if status.state == "stopped" else None


def _why_empty(status: RunStatus, is_foreign: bool) -> str:
    if is_foreign and status.message:
        return status.message
    if not status.has_started:
        return f"not started ({status.message})" if status.message else "not started"
    because = f" ({status.message})" if status.message else ""
    return f"{status.state}{because}, without an evaluation so far"


def fit_sweep(sweep: StartedSweep, *, done: Done | None = None, **changes: Any) -> list[FittedRun]:
    """A fit of every run of a sweep, with the plan's settings or the given ones of `FitSettings`.

    `done` receives the number of fitted runs and the number to fit.
    """
    settings = replace(with_task(sweep, changes.get("task")).plan.fit_settings, **changes)
    return fitted_runs(sweep, settings, done)


def fitted_runs(sweep: StartedSweep, settings: FitSettings, done: Done | None) -> list[FittedRun]:
    """The runs in the plan's order."""
    runs = [(variant.name, run) for variant in sweep.plan.variants for run in variant.runs]
    wanted = [
        WantedRun(folder=sweep.run(run.id), name=run_name(name, run.seed), settings=settings) for name, run in runs
    ]
    readings = readings_of_runs(wanted, done=done)
    return [
        fitted_run(sweep.run(run.id), name, run, reading) for (name, run), reading in zip(runs, readings, strict=True)
    ]
