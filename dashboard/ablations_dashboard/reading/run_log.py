"""The log and the kept rollouts of a run for its page, cached until a file changes."""

from pathlib import Path
from typing import Any

import streamlit as st

from ablations.errors import AblationsError
from ablations_dashboard.reading.cache import Stamp, stamp
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder

Rows = list[dict[str, Any]]


def load_log(folder: RunFolder) -> Rows:
    """Every row of the run log; AblationsError if the log is damaged."""
    return _read(folder.metrics)


def load_rollouts(folder: RunFolder) -> Rows:
    """Every kept rollout. AblationsError if the file is damaged."""
    return _read(folder.rollouts)


def _read(path: Path) -> Rows:
    try:
        return _rows(path, stamp(path))
    except ValueError as error:
        raise AblationsError(str(error)) from error


@st.cache_resource(max_entries=16, show_spinner="Reading the run …")
def _rows(path: Path, written: Stamp) -> Rows:
    return list(read_rows(path))
