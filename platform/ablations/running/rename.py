"""A sweep under another name, in its home folder and in MLflow. Its runs have ids and know nothing of it."""

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
from ablations.status.progress import is_still_going, run_rows
from ablations.tracking.ledger import default_tracking_uri, read_ledger
from scalerl.durable import sync_file
from scalerl.run.run_folder import write_atomically

LEFT = ("lock", "sync.lock", "report.html", "card.md", ".*")
"""What the new folder does not take over: locks, and pages with the old name in them."""


@dataclass(frozen=True, kw_only=True)
class Renamed:
    """`Renamed(sweep=StartedSweep(...), tracking_uri="sqlite:///...", had_report=True)`."""

    sweep: StartedSweep
    tracking_uri: str
    """The MLflow server whose experiment has the new name; empty where none has one."""
    had_report: bool


def rename_sweep(sweep: StartedSweep, name: str) -> Renamed:
    """Give a sweep another name; AblationsError while it trains, where the name is taken, and where MLflow fails.

    The new folder is whole before the old one goes, so that what an interruption leaves is the sweep twice.
    """
    check_sweep_name(name)
    home, new = sweep.home, StartedSweep(home=sweep.home, plan=replace(sweep.plan, sweep=name))
    if new.folder.exists():
        raise AblationsError(f"{home.path} has a sweep '{name}' already; choose another name, or delete that one")
    if is_still_going(sweep, run_rows(sweep)):
        raise AblationsError(f"sweep '{sweep.name}' trains, or waits to; `platform cancel {sweep.name}` ends it first")
    try:
        with FileLock(sweep.lock, timeout=0), FileLock(sweep.folder / "sync.lock", timeout=0):
            with _copied_folder(sweep, new) as copied:
                uri = _rename_in_mlflow(sweep, name)  # a disk that is full has been found by now
                copied.rename(new.folder)
            sync_file(home.sweeps)
            # Beside the sweeps, so that what an interruption leaves of it is none.
            doomed = home.path / f".{sweep.name}.renamed"
            shutil.rmtree(doomed, ignore_errors=True)
            sweep.folder.rename(doomed)
    except Timeout:
        raise AblationsError(
            f"sweep '{sweep.name}': a command works on it or sends it to MLflow; wait for it to end"
        ) from None
    had_report = (doomed / "report.html").exists()
    shutil.rmtree(doomed)
    return Renamed(sweep=new, tracking_uri=uri, had_report=had_report)


def _rename_in_mlflow(sweep: StartedSweep, name: str) -> str:
    """The server that has the sweep, where its experiment then has the new name; AblationsError where it does not."""
    ledger = read_ledger(sweep)
    uri = ledger.tracking_uri or default_tracking_uri(sweep.home)
    if uri == default_tracking_uri(sweep.home) and not (sweep.home.path / "mlflow.db").exists():
        return ""
    from ablations.tracking.mlflow_experiment import failures_of_mlflow, rename_experiment, set_up_client, short_reason

    set_up_client()
    try:
        return uri if rename_experiment(uri, sweep.name, name, known_id=ledger.experiment_id) else ""
    except failures_of_mlflow() as error:
        raise AblationsError(
            f"MLflow at {uri}, which has this sweep, cannot rename it ({short_reason(error)}); nothing is renamed"
        ) from error


@contextmanager
def _copied_folder(sweep: StartedSweep, new: StartedSweep) -> Iterator[Path]:
    """The new folder, whole but not in its place, with the name where files say it; the plan has the time at which the
    sweep was started."""
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
