"""What is wrong with a run at its end, and when each warning about its health was true, by rules over the whole log."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from ablations.diagnosis.diagnose import Diagnosis, diagnose
from ablations.diagnosis.run_history import history_of_run
from ablations_dashboard.reading.cache import Stamp, stamp
from ablations_dashboard.reading.run_log import load_log
from scalerl.run.health import Health
from scalerl.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A rule of `scalerl.run.health` that warned at every step from `first` to `last`.

    Episode(rule="entropy", text="entropy is down to 0.019 nats ...", first=120, last=140, compute_gpu_hours=310.0)
    """

    rule: str
    text: str
    """The warning at the last of these steps."""
    first: int
    last: int
    compute_gpu_hours: float
    """Compute at the first of these steps."""


def episodes(rows: list[dict[str, Any]]) -> list[Episode]:
    """Every warning over the train rows of a run, in the order of its first step; rows of programs without the
    trainer's columns have none.
    """
    health, found, current = Health(), list[Episode](), dict[str, Episode]()
    for row in rows:
        if row["kind"] != "train" or "skipped" not in row:
            continue
        health.add(row)
        step, now = row["step"], health.warnings()
        for rule, text in now.items():
            if (before := current.get(rule)) is None:
                compute = row["compute_gpu_hours"]
                current[rule] = Episode(rule=rule, text=text, first=step, last=step, compute_gpu_hours=compute)
            else:
                current[rule] = replace(before, text=text, last=step)
        found += [current.pop(rule) for rule in [*current] if rule not in now]
    return sorted((*found, *current.values()), key=lambda one: one.first)


def load_episodes(folder: RunFolder) -> list[Episode]:
    """The warnings of a run over its log; AblationsError if the log is damaged."""
    return _episodes(folder.metrics, stamp(folder.metrics), folder)


@st.cache_resource(max_entries=16, show_spinner="Looking for warnings …")
def _episodes(path: Path, written: Stamp, _folder: RunFolder) -> list[Episode]:
    return episodes(load_log(_folder))


def load_diagnoses(folder: RunFolder) -> list[Diagnosis]:
    """What `platform doctor` finds, the likeliest cause first; none if the log is damaged or too short."""
    return _diagnoses(folder.metrics, stamp(folder.metrics), stamp(folder.rollouts), folder)


@st.cache_resource(max_entries=16, show_spinner="Looking for causes …")
def _diagnoses(path: Path, written: Stamp, rollouts_written: Stamp, _folder: RunFolder) -> list[Diagnosis]:
    return diagnose(history_of_run(_folder, _folder.path.name))
