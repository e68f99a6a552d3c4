"""The commands that serve pages and keep MLflow informed: dashboard, mlflow, sync."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ablations.cli.common import NOT_FINISHED, HomeOption, SweepArgument, TrackingOption, find_sweep
from ablations.errors import AblationsError
from ablations.home import find_home

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
    """Serve MLflow's own pages for the home folder's store."""
    from ablations.ledger import default_tracking_uri

    store = default_tracking_uri(find_home(home))
    become([sys.executable, "-m", "mlflow", "ui", "--host=127.0.0.1", f"--port={port}", "--backend-store-uri", store])


def become(command: list[str]) -> NoReturn:
    """Replace this process by a server."""
    os.execv(command[0], command)


def sync(sweep: SweepArgument = None, tracking_uri: TrackingOption = None, home: HomeOption = None) -> None:
    """Bring MLflow up to date with the run folders; nothing is sent twice."""
    from ablations.tracking import sync as synchronise

    place = find_home(home)
    report = synchronise(place.path, find_sweep(place, sweep), tracking_uri)
    print(report)
    if report.rows_left or report.reason:
        raise typer.Exit(NOT_FINISHED)
