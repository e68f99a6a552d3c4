"""Every run of a sweep as a row: its state, settings and numbers. Runs that failed, collapsed or fell come first.

>>> run_table(sweep, run_rows(sweep)).columns.tolist()
['run', 'state', 'seed', 'compute', 'pass rate', 'level', 'loss.type', 'message', ..., 'step', 'attempt', 'id']
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ablations.answers.level import level_of
from ablations.findings.declines import collapse_of, fall_of
from ablations.findings.repeated_runs import some_recipe
from ablations.fit.options import FitSettings
from ablations.home.labels import PlannedRun, PlannedVariant
from ablations.home.notes import Notes, read_notes
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun, fitted_run
from ablations.readings.run_reading import read_kept
from ablations.status.rows import RunRow, comparable_rate, share
from ablations.study.override import plain_settings, value_at
from ablations.terminal.visible import made_visible
from ablations.text import setting_text
from scalerl.credentials import values_without_secrets

FIRST_COLUMNS = ("run", "state", "seed", "compute", "pass rate", "level")
LAST_COLUMNS = ("message", "tags", "note", "variant", "step", "attempt", "id")
"""The columns on either side of the settings."""
COLLAPSED, FELL = "collapsed", "fell"
"""States of a run whose pass rate did so, as its kept fit has it; else the state is that of its process."""


def run_table(sweep: StartedSweep, rows: Sequence[RunRow]) -> pd.DataFrame:
    """A row per run. `compute` is a share of the budget; `level` is the mean pass rate over the last third of it."""
    settings, notes, fit = settings_by_variant(sweep), read_notes(sweep).runs, sweep.plan.fit_settings
    lines = [_line(sweep, row, fit) | _written(notes.get(row.id)) | settings[row.variant] for row in rows]
    names = list(dict.fromkeys(path for own in settings.values() for path in own))
    table = pd.DataFrame(lines, columns=[*FIRST_COLUMNS, *names, *LAST_COLUMNS])
    for name in names:
        table[name] = _column(pd.Series(table[name]))
    grave = [_gravity(state) for state in table["state"]]
    order = sorted(range(len(table)), key=grave.__getitem__)
    return table.iloc[order].reset_index(drop=True)


def settings_by_variant(sweep: StartedSweep) -> dict[str, dict[str, Any]]:
    """The value of every setting that varies, by variant; a setting that a variant's recipe lacks is missing there."""
    variants = sweep.plan.variants
    recipe = some_recipe(sweep, sweep.plan.reference)
    own = {} if recipe is None else values_without_secrets(plain_settings(recipe))
    changes = {variant.name: _flat(variant) for variant in variants}
    paths = list(dict.fromkeys(path for one in changes.values() for path in one))
    return {
        variant.name: {
            f"{path} (setting)" if path in (*FIRST_COLUMNS, *LAST_COLUMNS) else path: value[0]
            for path in paths
            if (value := _value(path, changes[variant.name], variant.overrides, own))
        }
        for variant in variants
    }


def _value(path: str, changed: Mapping[str, Any], overrides: Mapping[str, Any], own: Mapping[str, Any]) -> list[Any]:
    """The value in a list of one: the variant's own, else the reference's unless the variant has replaced its block."""
    if path in changed:
        return [changed[path]]
    block = path.rpartition(".")[0]
    is_replaced = block in overrides or f"{block}.type" in overrides
    return [] if is_replaced else value_at(own, path)


def _flat(variant: PlannedVariant) -> dict[str, Any]:
    """The changes by dotted path: `{"loss": {"type": "dapo"}}` changes `loss.type`."""
    found: dict[str, Any] = {}

    def add(path: str, value: Any) -> None:
        if isinstance(value, Mapping) and value:
            for name, inner in value.items():
                add(f"{path}.{name}", inner)
        else:
            found[path] = value

    for path, value in variant.overrides.items():
        add(path, value)
    return found


def _column(values: pd.Series) -> pd.Series:
    """The settings as numbers if all are, else as text."""
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values.dropna()):
        return pd.Series(pd.to_numeric(values))
    return values.map(lambda one: made_visible(setting_text(one)), na_action="ignore")


def _written(notes: Notes | None) -> dict[str, str]:
    """What people have written about a run."""
    if notes is None:
        return {"tags": "", "note": ""}
    return {"tags": made_visible(" ".join(notes.tags)), "note": made_visible(notes.text)}


def _line(sweep: StartedSweep, row: RunRow, fit: FitSettings) -> dict[str, Any]:
    plan, state = sweep.plan, row.state
    called, fall, level = str(state.state), "", None
    if (run := _kept(sweep, row, fit)) is not None:
        called = state_called(called, run)
        fall = collapse_of(run, plan.hours_name) or fall_of(run, plan.hours_name)
        if run.curve is not None:
            level = level_of(run.curve, min(plan.budget_gpu_hours, plan.fit_to_gpu_hours))
    return {
        "run": made_visible(row.name),
        "state": called,
        "variant": made_visible(row.variant),
        "seed": row.seed,
        "compute": share(state, plan),
        "pass rate": comparable_rate(state, plan),
        "level": None if level is None else level.value,
        "step": state.step,
        "attempt": state.attempt,
        "message": made_visible("; ".join(filter(None, (fall, state.said)))),
        "id": row.id,
    }


def _kept(sweep: StartedSweep, row: RunRow, fit: FitSettings) -> FittedRun | None:
    """The run with its kept fit; None if nothing has fitted it since it last wrote."""
    folder = sweep.run(row.id)
    reading = read_kept(folder, row.name, fit)
    planned = PlannedRun(seed=row.seed, id=row.id)
    return None if reading is None else fitted_run(folder, row.variant, planned, reading, row.status)


def state_called(state: str, run: FittedRun) -> str:
    """The state of a run, whose fit is known: `collapsed` or `fell` instead of `done`."""
    if is_broken(state):
        return state
    return COLLAPSED if collapse_of(run, "") else FELL if fall_of(run, "") else state


def is_broken(state: str) -> bool:
    """True if a run in this state ended early without being asked to, or its process died."""
    return state == State.STALE or (state in [*State] and State(state).is_failure)


def _gravity(state: str) -> int:
    return 0 if is_broken(state) else 1 if state == COLLAPSED else 2 if state == FELL else 3


def states_in(states: Iterable[str]) -> list[str]:
    """The states that occur, the gravest first."""
    return sorted(dict.fromkeys(states), key=_gravity)
