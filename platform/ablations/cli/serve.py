"""The commands that serve pages and keep MLflow informed: dashboard, mlflow, sync."""

import importlib.util
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ablations.cli.options import (
    NOT_FINISHED,
    HomeOption,
    JsonOption,
    SweepArgument,
    TrackingOption,
    find_sweep,
    print_json,
)
from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.home.started_sweep import StartedSweep
from ablations.signals import handled

SYNC_EVERY_S = 30.0

PortOption = Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")]


def dashboard(port: PortOption = 8501, home: HomeOption = None) -> None:
    """Serve the page with curves, fits and verdicts on this machine."""
    spec = importlib.util.find_spec("ablations_dashboard")
    if spec is None or spec.origin is None or importlib.util.find_spec("streamlit") is None:
        raise AblationsError("the dashboard is not installed; `pip install 'ablations[dashboard]'` adds it")
    page = Path(spec.origin).with_name("app.py")
    os.environ["ABLATIONS_HOME"] = str(find_home(home).path)
    options = {
        "server.address": "127.0.0.1",
        "server.port": port,
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "viewer",
        "theme.primaryColor": "#1f2328",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    become([sys.executable, "-m", "streamlit", "run", str(page), *flags])


def mlflow(port: PortOption = 5000, home: HomeOption = None) -> None:
    """Serve MLflow's pages for the home folder's store."""
    from ablations.tracking.ledger import default_tracking_uri

    store = default_tracking_uri(find_home(home))
    become([sys.executable, "-m", "mlflow", "ui", "--host=127.0.0.1", f"--port={port}", "--backend-store-uri", store])


def become(command: list[str]) -> NoReturn:
    """Replace this process by a server."""
    os.execv(command[0], command)


def sync(
    sweep: SweepArgument = None,
    tracking_uri: TrackingOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Push again and again until the sweep ends.")] = False,
    every: Annotated[
        float | None, typer.Option(min=1, help=f"Seconds between two pushes of --watch; by default {SYNC_EVERY_S:g}.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring MLflow up to date with the run folders. Nothing is sent twice."""
    if every is not None and not watch:
        raise AblationsError(f"--every {every:g} has no effect without --watch")
    if watch and as_json:
        raise AblationsError("--json has no effect with --watch, which prints a line per change")
    started = find_sweep(home, sweep)
    if watch:
        watch_sync(started, tracking_uri, every or SYNC_EVERY_S)
        return
    from ablations.tracking.synchroniser import push_sweep

    report = push_sweep(started, tracking_uri)
    if as_json:
        print_json({"sweep": started.name, **asdict(report)})
    else:
        print(report)
    if report.rows_left or report.reason:
        raise typer.Exit(NOT_FINISHED)


def watch_sync(sweep: StartedSweep, tracking_uri: str | None, every_s: float) -> None:
    """Push what is new until the sweep has ended; exit code 3 when something is left then, or at Ctrl-C."""
    from ablations.status.live import clock
    from ablations.tracking.ledger import default_tracking_uri
    from ablations.tracking.watch import SyncWatch

    def say(text: str) -> None:
        print(f"{clock():%H:%M:%S}  {text}", flush=True)

    uri = tracking_uri or default_tracking_uri(sweep.home)
    say(f"{sweep.name}: pushing new rows to MLflow at {uri} every {every_s:g} s until the sweep ends")
    watch = SyncWatch(sweep=sweep, tracking_uri=tracking_uri, every_s=every_s, say=say)
    try:
        with handled(signal.default_int_handler, signal.SIGTERM):
            is_everything = watch.run()
    except KeyboardInterrupt:
        is_everything = watch.has_everything()
        said = "MLflow has everything so far" if is_everything else "run the same command again to push the rest"
        say(f"{sweep.name}: stopped; {said}")
    if not is_everything:
        raise typer.Exit(NOT_FINISHED)
