"""Readings for the pages, cached until their sources change."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import streamlit as st

from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.results import Results, compared
from ablations.home.heartbeat import HEARTBEAT_LIMIT_S
from ablations.home.home import Home
from ablations.home.labels import run_name
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep, plans_of, read_sweep
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun, fit_sweep, fitted_run
from ablations.readings.run_reading import Stamp, read_kept, stamp
from ablations.running.ending import all_ended
from ablations.status.rows import RunRow
from scalerl.run.run_folder import RunFolder

REFRESH_S = 10
"""Seconds after which a page that may change is read again."""
MAX_FITS = 2048
"""Limit on fits in memory, at 0.2 MB each."""
STATUS_FIELDS = ("state", "message", "code_versions")
"""Fields of status.json in the results of a run; the heartbeat is left out, since it changes every second."""


def load_results(sweep: StartedSweep) -> Results:
    """Curves, fits and comparison of a sweep; a run is read and fitted again once its run log has grown."""
    # As text, since Streamlit takes a second to hash the plan of 2,000 runs.
    return _results(sweep.home.path, repr((sweep.plan, sweep.beside, _state_of(sweep))), sweep)


@st.cache_resource(show_spinner=False)  # no spinner, since a thread without a session has no place for one
def read_ahead(home: Path, name: str) -> None:
    """Load the kept readings of a sweep into memory, and compare its variants unless a run still needs a fit."""
    sweep = read_sweep(Home(home), name)
    if _take_kept(home, name, sweep):
        load_results(sweep)


def may_change(sweep: StartedSweep, rows: Sequence[RunRow], *, now: float) -> bool:
    """True if a run trains, or waits in a sweep that shows signs of life; `now` is a Unix time."""
    if any(row.state.pid is not None for row in rows):
        return True
    states = {row.state.state for row in rows}
    if State.RUNNING in states or all_ended(sweep, list(rows)):
        return State.RUNNING in states
    beats = [sweep.run(row.id).read_status().heartbeat for row in rows]
    return now - max(beats) < HEARTBEAT_LIMIT_S or sweep.is_at_work


def _state_of(sweep: StartedSweep) -> tuple[Any, ...]:
    """The sources of the results apart from the plan; a new state means new results."""
    own = [(stamp(sweep.run(run.id).metrics), _known(sweep, run)) for run in sweep.plan.runs]
    elsewhere = {run.id for plan in plans_of(sweep.home, sweep.plan.scale) for run in plan.runs}
    elsewhere -= {run.id for run in sweep.plan.runs}
    decided = stamp(sweep.folder / "stopped.json")
    return own, [(one, stamp(sweep.run(one).metrics)) for one in sorted(elsewhere)], decided


def _known(sweep: StartedSweep, run: PlannedRun) -> dict[str, Any]:
    folder = sweep.run(run.id)
    return _status_said(folder, stamp(folder.path / "status.json"))


@lru_cache(maxsize=4 * MAX_FITS)
def _status_said(folder: RunFolder, written: Stamp) -> dict[str, Any]:
    status = folder.read_status()
    return {field: getattr(status, field) for field in STATUS_FIELDS}


# Only the arguments without a leading underscore form the key; the others follow from them.
@st.cache_resource(max_entries=16, show_spinner="Fitting and comparing the variants …")
def _results(home: Path, plan_and_state: str, _sweep: StartedSweep) -> Results:
    runs = iter(_fitted_runs(_sweep))
    variants = (
        FittedVariant(name=one.name, overrides=one.overrides, runs=tuple(islice(runs, len(one.runs))))
        for one in _sweep.plan.variants
    )
    return compared(_sweep, tuple(variants))


@st.cache_resource
def _in_memory() -> dict[Hashable, FittedRun]:
    """Runs by all their sources, the last used at the end."""
    return {}


def _fitted_runs(sweep: StartedSweep) -> list[FittedRun]:
    """Every run in the plan's order; changed runs are read together, by as many processes as pay off."""
    _take_kept(sweep.home.path, sweep.name, sweep)  # or wait for the server, which may be doing so
    held, plan = _in_memory(), sweep.plan
    runs = [(variant, run, _key(sweep, variant, run)) for variant in plan.variants for run in variant.runs]
    known = {key: held.get(key) for _, _, key in runs}
    new = [(replace(variant, runs=(run,)), key) for variant, run, key in runs if known[key] is None]
    if new:
        alone = replace(plan, variants=tuple(variant for variant, _ in new))
        known |= zip((key for _, key in new), fit_sweep(replace(sweep, plan=alone)), strict=True)
    found = [run for _, _, key in runs if (run := known[key]) is not None]
    for (_, _, key), run in zip(runs, found, strict=True):
        held.pop(key, None)
        held[key] = run
    for key in list(held)[:-MAX_FITS]:
        held.pop(key, None)
    return found


@st.cache_resource(show_spinner=False)
def _take_kept(home: Path, name: str, _sweep: StartedSweep) -> bool:
    """Load the kept readings of a sweep's runs into memory, once; True if that covers all runs."""
    held, settings, is_all = _in_memory(), _sweep.plan.fit_settings, True
    for variant in _sweep.plan.variants:
        for run in variant.runs:
            folder = _sweep.run(run.id)
            kept = read_kept(folder, run_name(variant.name, run.seed), settings)
            if kept is not None:
                held[_key(_sweep, variant, run)] = fitted_run(folder, variant.name, run, kept)
            is_all = is_all and kept is not None
    return is_all


def _key(sweep: StartedSweep, variant: PlannedVariant, run: PlannedRun) -> Hashable:
    """All sources of a run: once its log, status or settings have changed, the cached run is never used again."""
    written = stamp(sweep.run(run.id).metrics)
    return sweep.home.path, sweep.plan.fit_settings, variant.name, run, written, *_known(sweep, run).values()
