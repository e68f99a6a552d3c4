"""Gives a sweep another name, in its home folder and in MLflow. Its runs have ids and do not record the name."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from ablations.errors import AblationsError
from ablations.home.home import check_sweep_name
from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import refuse_while_going
from ablations.tracking.ledger import default_tracking_uri, read_ledger
from ablations.tracking.mlflow_experiment import failures_of_mlflow, rename_experiment, set_up_client, short_reason
from scalerl.durable import sync_file
from scalerl.run.run_folder import write_atomically

LEFT = ("lock", "sync.lock", "notified.lock", "report.html", "card.md", ".*")
"""Files that the new folder does not take over: locks, and pages that contain the old name."""


@dataclass(frozen=True, kw_only=True)
class Renamed:
    """The result of renaming: `Renamed(sweep=StartedSweep(...), tracking_uri="sqlite:///...", had_report=True)`."""

    sweep: StartedSweep
    tracking_uri: str
    """The MLflow server with the renamed experiment; empty if there is none."""
    had_report: bool


def rename_sweep(sweep: StartedSweep, name: str) -> Renamed:
    """Rename a sweep; raises AblationsError if it is still training, the name is taken, or MLflow fails.

    The new folder is complete before the old one is removed, so an interruption leaves the sweep twice.
    """
    check_sweep_name(name)
    home, new = sweep.home, StartedSweep(home=sweep.home, plan=replace(sweep.plan, sweep=name))
    if new.folder.exists():
        raise AblationsError(f"{home.path} already has a sweep '{name}'; choose another name or delete that sweep")
    refuse_while_going(sweep)
    try:
        with FileLock(sweep.lock, timeout=0), FileLock(sweep.folder / "sync.lock", timeout=0):
            with _copied_folder(sweep, new) as copied:
                uri = _rename_in_mlflow(sweep, name)  # after the copy, which fails on a full disk
                copied.rename(new.folder)
            sync_file(home.sweeps)
            # Beside the sweeps folder, so that a leftover of an interruption is not taken for a sweep.
            doomed = home.path / f".{sweep.name}.renamed"
            shutil.rmtree(doomed, ignore_errors=True)
            sweep.folder.rename(doomed)
    except Timeout:
        raise AblationsError(
            f"sweep '{sweep.name}': another command is using it or syncing it to MLflow; wait for that to end"
        ) from None
    had_report = (doomed / "report.html").exists()
    shutil.rmtree(doomed)
    return Renamed(sweep=new, tracking_uri=uri, had_report=had_report)


def _rename_in_mlflow(sweep: StartedSweep, name: str) -> str:
    """Rename the sweep's experiment; returns its server, or "" if none has it. AblationsError if the server refuses."""
    ledger = read_ledger(sweep)
    uri = ledger.tracking_uri or default_tracking_uri(sweep.home)
    if uri == default_tracking_uri(sweep.home) and not (sweep.home.path / "mlflow.db").exists():
        return ""

    set_up_client()
    try:
        return uri if rename_experiment(uri, sweep.name, name, known_id=ledger.experiment_id) else ""
    except failures_of_mlflow() as error:
        raise AblationsError(
            f"MLflow at {uri}, which has this sweep, cannot rename it ({short_reason(error)}); nothing was renamed"
        ) from error


@contextmanager
def _copied_folder(sweep: StartedSweep, new: StartedSweep) -> Iterator[Path]:
    """The new folder, complete but not yet in place: files have the new name, the plan keeps its start time."""
    home = sweep.home
    partial = home.path / f".{new.name}.{os.getpid()}.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shutil.copytree(sweep.folder, partial, ignore=shutil.ignore_patterns(*LEFT))
        new.plan.write(partial / "plan.json")
        shutil.copystat(sweep.folder / "plan.json", partial / "plan.json")
        for path in (partial / "submissions").glob("*.json"):
            write_atomically(path, json.dumps(json.loads(path.read_bytes()) | {"sweep": new.name}, indent=1).encode())
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
