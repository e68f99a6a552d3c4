"""The files that a run has written, read for its page, and what the rules find in them; cached until a file changes."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from ablations.diagnosis.diagnose import Diagnosis, diagnose
from ablations.diagnosis.history import history_of_run
from ablations.errors import AblationsError
from ablations.readings.run_reading import Stamp, stamp
from ablations.tracking.mlflow_metrics import row_scalars
from scalerl.run.health import Health
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

Rows = list[dict[str, Any]]


def _sources(folder: RunFolder) -> tuple[Path, Stamp, Stamp]:
    """What all readings of a run come from: each is made again once it has changed."""
    return folder.path, stamp(folder.metrics), stamp(folder.rollouts)


KEYS: dict[str | type[Any], Callable[[Any], Any]] = {RunFolder: _sources}


@st.cache_resource(max_entries=16, show_spinner="Reading the run …", hash_funcs=KEYS)
def load_log(folder: RunFolder) -> Rows:
    """Every row of the run log; AblationsError if the log is damaged."""
    return _read(folder.metrics)


@st.cache_resource(max_entries=16, show_spinner="Reading the run …", hash_funcs=KEYS)
def load_rollouts(folder: RunFolder) -> Rows:
    """Every kept rollout. AblationsError if the file is damaged."""
    return _read(folder.rollouts)


def _read(path: Path) -> Rows:
    try:
        return list(read_rows(path))
    except ValueError as error:
        raise AblationsError(str(error)) from error


@st.cache_resource(max_entries=64, show_spinner="Reading the run log …", hash_funcs=KEYS)
def load_metrics(folder: RunFolder) -> pd.DataFrame:
    """The optimiser steps of a run, one per row, with columns step, wall_s (NaN if unknown) and every logged number.

    ValueError if the run log is damaged.
    """
    rows = read_rows(folder.metrics, "train")
    return pd.DataFrame([{"step": row["step"], "wall_s": row.get("wall_s", nan)} | row_scalars(row) for row in rows])


@dataclass(frozen=True, kw_only=True)
class WarningSpan:
    """A rule of `scalerl.run.health` that warned at every step from `first` to `last`.

    WarningSpan(rule="entropy", text="entropy is down to 0.019 nats ...", first=120, last=140, compute_gpu_hours=310.0)
    """

    rule: str
    text: str
    """The warning at the last of these steps."""
    first: int
    last: int
    compute_gpu_hours: float
    """Compute at the first of these steps."""


def warning_spans(rows: list[dict[str, Any]]) -> list[WarningSpan]:
    """Every warning over the train rows of a run, in the order of its first step; rows of programs without the
    trainer's columns have none.
    """
    health, found, current = Health(), list[WarningSpan](), dict[str, WarningSpan]()
    for row in rows:
        if row["kind"] != "train" or "skipped" not in row:
            continue
        health.add(row)
        step, now = row["step"], health.warnings()
        for rule, text in now.items():
            if (before := current.get(rule)) is None:
                compute = row["compute_gpu_hours"]
                current[rule] = WarningSpan(rule=rule, text=text, first=step, last=step, compute_gpu_hours=compute)
            else:
                current[rule] = replace(before, text=text, last=step)
        found += [current.pop(rule) for rule in [*current] if rule not in now]
    return sorted((*found, *current.values()), key=lambda one: one.first)


@st.cache_resource(max_entries=16, show_spinner="Looking for warnings …", hash_funcs=KEYS)
def load_warning_spans(folder: RunFolder) -> list[WarningSpan]:
    """The warnings of a run over its log; none if the log is damaged (the sections report it)."""
    with suppress(AblationsError):
        return warning_spans(load_log(folder))
    return []


@st.cache_resource(max_entries=16, show_spinner="Looking for causes …", hash_funcs=KEYS)
def load_diagnoses(folder: RunFolder) -> list[Diagnosis]:
    """What `platform doctor` finds, the likeliest cause first; none if the log is damaged or too short."""
    return diagnose(history_of_run(folder, folder.path.name))
