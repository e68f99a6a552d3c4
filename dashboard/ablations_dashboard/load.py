"""What the page reads, kept until a file it came from changes."""

from pathlib import Path

import pandas as pd
import streamlit as st

from ablations.home import Home
from ablations.plan import Plan
from ablations.results import Results, read_results
from ablations.scalars import row_scalars
from ablations.summary import numbers
from scalerl.metrics import read_rows

RUN_FILES = ("metrics.jsonl", "status.json")
Stamp = tuple[int, int]
"""Time and size of a file: a new one means new content."""


def load_plan(home: Home, sweep: str) -> Plan:
    """The plan of a sweep; AblationsError when it cannot be read."""
    return Plan.read(home.sweep(sweep) / "plan.json")


def load_results(home: Home, plan: Plan) -> Results:
    """Curves, fits and comparison of a sweep."""
    folders = [home.run(run.id).path for variant in plan.variants for run in variant.runs]
    files = [home.sweep(plan.sweep) / "plan.json", *(folder / name for folder in folders for name in RUN_FILES)]
    return _results(home.path, plan.sweep, tuple(map(stamp, files)))


def load_metrics(home: Home, run_id: str) -> pd.DataFrame:
    """The optimiser steps of a run, one a row, with columns step, wall_s and every number that was logged.

    ValueError when the run log is damaged.
    """
    path = home.run(run_id).metrics
    return _metrics(path, stamp(path))


def comparison_csv(results: Results) -> bytes:
    """The comparison with all its numbers, one line a variant."""
    return pd.DataFrame([numbers(results, variant) for variant in results.variants]).to_csv(index=False).encode()


def stamp(path: Path) -> Stamp:
    """The file's stamp; (0, 0) when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


# The files' stamps are part of the key: an entry is never used again once one of them has changed.
@st.cache_resource(max_entries=8, show_spinner="Fitting the curves …")
def _results(home: Path, sweep: str, stamps: tuple[Stamp, ...]) -> Results:
    place = Home(home)
    return read_results(place, load_plan(place, sweep))


@st.cache_resource(max_entries=64, show_spinner="Reading the run log …")
def _metrics(path: Path, written: Stamp) -> pd.DataFrame:
    rows = [{"step": row["step"], "wall_s": row["wall_s"]} | row_scalars(row) for row in read_rows(path, "train")]
    return pd.DataFrame(rows)
