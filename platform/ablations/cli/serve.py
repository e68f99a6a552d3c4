"""The commands that serve pages or tools, and that update MLflow: dashboard, mlflow, mcp, sync."""

import importlib.util
import os
import secrets
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn
from urllib.parse import urlencode

import typer

from ablations.cli.exit_codes import NOT_FINISHED
from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import HomeOption, JsonOption, SweepArgument, TrackingOption, refuse_idle
from ablations.cli.output import print_json, tell
from ablations.errors import AblationsError
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import StartedSweep
from ablations.signals import handled
from ablations.status.live_table import clock
from ablations.status.progress import is_still_going, run_rows
from ablations.terminal.progress_bar import progress_bar
from ablations.tracking.beside_a_sweep import SyncWatch
from ablations.tracking.runs_page import runs_page_url
from ablations.tracking.sync_note import default_tracking_uri, newest_experiment

SYNC_EVERY_S = 30.0
QUIET_MLFLOW = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PYTHONWARNINGS": "ignore",
}
"""By default MLflow's server and pages send telemetry; it also prints warnings, and starts processes for jobs that
nothing here uses."""

TOKEN_VARIABLE = "ABLATIONS_DASHBOARD_TOKEN"
"""Environment variable with the dashboard's token; empty if the dashboard needs none."""

PortOption = Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")]


def existing_home(asked: Path | None) -> Home:
    """The home folder; AblationsError if `--home` names a missing folder."""
    if asked is not None and not asked.is_dir():
        raise AblationsError(f"--home {asked}: no such folder; name the home folder of a sweep")
    return find_home(asked)


def dashboard(
    port: PortOption = 8501,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Require no token, for example behind a proxy with a login.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Serve curves, fits and verdicts as web pages on this machine. Opening them requires the printed URL with its
    token.

    ABLATIONS_DASHBOARD_TOKEN sets the token; otherwise each start creates a new one.
    """
    spec = importlib.util.find_spec("ablations_dashboard")
    if spec is None or spec.origin is None or importlib.util.find_spec("streamlit") is None:
        raise AblationsError("the dashboard is not installed; run `pip install 'ablations[dashboard]'`")
    page = Path(spec.origin).with_name("app.py")
    folder = existing_home(home).path
    token = _token(no_token=no_token)
    os.environ |= {"ABLATIONS_HOME": str(folder), TOKEN_VARIABLE: token}
    # In the C library, a heap for each thread; after a few visits these take 30 MB more than one heap for all.
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")
    query = f"?{urlencode({'token': token})}" if token else ""
    print(f"Pages of {folder}: http://127.0.0.1:{port}/{query}", flush=True)
    options = {
        "server.address": "127.0.0.1",
        "server.port": port,
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
        "server.fileWatcherType": "none",
        "client.toolbarMode": "viewer",
        "logger.hideWelcomeMessage": "true",
        "theme.light.primaryColor": "#0072B2",
        "theme.dark.primaryColor": "#56B4E9",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    become([sys.executable, "-P", "-m", "ablations_dashboard.server.preload", str(page), *flags])


def _token(*, no_token: bool) -> str:
    """The token set in the environment, else a new one; empty with `no_token`."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if no_token and given:
        raise AblationsError(f"--no-token conflicts with {TOKEN_VARIABLE}; use one of them")
    return "" if no_token else given or secrets.token_urlsafe(24)


def mlflow(port: PortOption = 5000, home: HomeOption = None) -> None:
    """Serve MLflow's pages for the home folder's store on this machine, without a token.

    The printed URL opens the runs of the newest sweep that MLflow has. MLflow's own start page opens on traces instead.

    Every user of the machine can read and change the data in MLflow; the run folders are not affected.
    """
    folder = existing_home(home)
    store, server = default_tracking_uri(folder), f"http://127.0.0.1:{port}"
    newest = newest_experiment(folder)
    url = runs_page_url(server, newest) if newest else server
    print(f"MLflow of {folder.path}, in a few seconds: {url}", flush=True)
    for name, value in QUIET_MLFLOW.items():
        os.environ.setdefault(name, value)
    options = (
        "--host=127.0.0.1",
        f"--port={port}",
        f"--registry-store-uri={store}",
        "--uvicorn-opts=--log-level=warning",
    )
    become([sys.executable, "-P", "-m", "mlflow", "ui", *options, "--backend-store-uri", store])


def become(command: list[str]) -> NoReturn:
    """Replace this process with a server."""
    os.execv(command[0], command)


def mcp(
    most_compute: Annotated[
        float | None,
        typer.Option(
            help="Offer the tool sweep, which trains on this machine; it rejects a sweep with more compute left to "
            "train than this, in GPU-hours or the study's own unit."
        ),
    ] = None,
    most_hours: Annotated[
        float | None,
        typer.Option(help="With --most-compute: stop a sweep that has trained on this machine for this many hours."),
    ] = None,
    home: HomeOption = None,
) -> None:
    """Serve the commands as tools of the Model Context Protocol, on standard input and output, until they close.

    Each tool returns what its command prints with --json. File names are relative to the folder in which the server
    starts; only files in it, in the home folder and in the folders of ABLATIONS_READ_FROM are read.
    """
    if most_compute is not None and not most_compute > 0:
        raise AblationsError(f"--most-compute: found {most_compute:g}; must be a number greater than 0")
    if most_hours is not None and most_compute is None:
        raise AblationsError(f"--most-hours {most_hours:g} has no effect without --most-compute")
    if most_hours is not None and not most_hours > 0:
        raise AblationsError(f"--most-hours: found {most_hours:g}; must be a number greater than 0")
    if importlib.util.find_spec("mcp") is None:
        raise AblationsError("the server for agents is not installed; run `pip install 'ablations[mcp]'`")
    from ablations.cli.mcp_tools import Tools

    Tools(home=find_home(home), most_compute=most_compute, most_hours=most_hours).server().run()


def sync(
    sweep: SweepArgument = None,
    tracking_uri: TrackingOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Keep pushing until the sweep ends.")] = False,
    every: Annotated[
        float | None, typer.Option(min=1, help=f"Seconds between two pushes of --watch. Default: {SYNC_EVERY_S:g}.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring MLflow up to date with the run folders. Nothing is sent twice; a run that several sweeps share is in the
    experiment of each."""
    if every is not None and not watch:
        raise AblationsError(f"--every {every:g} has no effect without --watch")
    if watch:
        refuse_idle("--watch, which prints a line per change", {"--json": as_json})
    started = find_sweep(home, sweep)
    if watch:
        watch_sync(started, tracking_uri, every or SYNC_EVERY_S)
        return
    from ablations.tracking.push_missing import push_sweep

    with progress_bar("to MLflow") as say_progress:
        report = push_sweep(started, tracking_uri, say_progress)
    if as_json:
        print_json({"sweep": started.name, **asdict(report)})
    else:
        tell(str(report))
    if report.rows_left or report.reason:
        raise typer.Exit(NOT_FINISHED)


def watch_sync(sweep: StartedSweep, tracking_uri: str | None, every_s: float) -> None:
    """Push new rows until the sweep has ended; exit code 3 if some are still left, or on Ctrl-C."""

    def say(text: str) -> None:
        tell(f"{clock():%H:%M:%S}  {text}")

    uri = tracking_uri or default_tracking_uri(sweep.home)
    say(f"{sweep.name}: pushing new rows to MLflow at {uri} every {every_s:g} s until the sweep ends")

    def is_going(sweep: StartedSweep) -> bool:
        return is_still_going(sweep, run_rows(sweep))

    watch = SyncWatch(sweep=sweep, tracking_uri=tracking_uri, every_s=every_s, is_going=is_going, say=say)
    try:
        with handled(signal.default_int_handler, signal.SIGTERM):
            is_everything = watch.run()
    except KeyboardInterrupt:
        is_everything = watch.has_everything()
        said = "MLflow has everything so far" if is_everything else "run the same command again to push the rest"
        say(f"{sweep.name}: stopped; {said}")
    if not is_everything:
        raise typer.Exit(NOT_FINISHED)
