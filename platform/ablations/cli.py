"""The commands of `platform`. Each imports what it needs when it runs: `--help` and `sweep --dry-run` start at once.

Exit codes: 0 done, 1 some run failed, 2 the input was wrong, 3 not finished.
"""

import json
import os
import shlex
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home import Home, find_home

PIPE_WIDTH = 150
FAILED, WRONG_INPUT, NOT_FINISHED = 1, 2, 3

app = typer.Typer(
    name="platform",
    help="Ablation studies of reinforcement learning for language models: one YAML file in, a verdict out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder; else ABLATIONS_HOME, else ./ablation-runs.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="path=value for every variant; may be repeated.")]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", envvar="MLFLOW_TRACKING_URI", help="MLflow; else the home folder's own.")
]
SweepArgument = Annotated[str | None, typer.Argument(help="Sweep name or file; else the one last started.")]


def main() -> None:
    """The console script: our own errors become one message and exit code 2."""
    try:
        app()
    except AblationsError as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, highlight=False, style="red")
        sys.exit(WRONG_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)


def console(*, stderr: bool = False) -> Console:
    """The terminal as wide as it is; a file or pipe wide enough for every table."""
    out = Console(stderr=stderr)
    return out if out.is_terminal else Console(stderr=stderr, width=PIPE_WIDTH)


def print_json(data: Any) -> None:
    """Print plain data, refusing numbers JSON has no word for."""
    print(json.dumps(data, indent=1, allow_nan=False))


def find_sweep(home: Home, name: str | None) -> str:
    """The sweep meant by a name, a sweep file, or nothing; AblationsError names those there are."""
    from ablations.errors import did_you_mean

    names = home.sweep_names()
    if not names:
        raise AblationsError(f"no sweep has been started in {home.path}; `platform sweep FILE` starts one")
    if name is None:
        return names[0]
    if name.endswith((".yaml", ".yml")) and Path(name).exists():
        from ablations.sweep import load_sweep

        name = load_sweep(Path(name)).name
    if name not in names:
        raise AblationsError(f"unknown sweep '{name}' in {home.path}; {did_you_mean(name, names, 'sweeps')}")
    return name


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file, for example sweeps/loo.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and stop.")] = False,
    scale: Annotated[str | None, typer.Option(help="Scale to use instead of the file's.")] = None,
    set_: SetOption = None,
    budget: Annotated[float | None, typer.Option(min=0, help="Compute of each run, in the scale's unit.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; else as many as there are cores.")] = None,
    tracking_uri: TrackingOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train every variant that is missing, record, fit and compare."""
    from ablations.expand import expand
    from ablations.run_sweep import make_plan, sweep_name

    if budget == 0:
        raise AblationsError("--budget 0: found 0, must be greater than 0")
    study = expand(file, scale=scale, sets=set_ or ())
    plan, place = make_plan(study, sweep_name(study, scale), budget), find_home(home)
    if dry_run:
        show_plan(study, plan, place, as_json)
        return
    from ablations.run_sweep import run_sweep

    out = console(stderr=as_json)
    jobs = jobs or max(1, (os.cpu_count() or 1) // study.reference.recipe.threads)
    try:
        finished = run_sweep(study, plan, place, file=file, jobs=jobs, tracking_uri=tracking_uri, console=out)
    except KeyboardInterrupt:
        out.print("stopped; the same command goes on from the last checkpoints")
        raise typer.Exit(NOT_FINISHED) from None
    conclude(plan, place, out, as_json)
    if not finished:
        raise typer.Exit(unfinished_code(plan, place))


def unfinished_code(plan: Any, home: Home) -> int:
    """1 when a run failed, 3 when runs are only not finished."""
    from ablations.progress import read_rows

    return FAILED if any(row.state.state == "failed" for row in read_rows(home, plan)) else NOT_FINISHED


def show_plan(study: Any, plan: Any, home: Home, as_json: bool) -> None:
    """What a sweep would train, and what of it is already there."""
    from ablations.progress import read_rows

    rows = read_rows(home, plan)
    overrides = {variant.name: variant.overrides for variant in plan.variants}
    if as_json:
        runs = [
            {
                "variant": row.variant,
                "seed": row.seed,
                "id": row.id,
                "overrides": overrides[row.variant],
                "state": row.state.state,
                "compute_gpu_hours": row.state.compute_gpu_hours,
            }
            for row in rows
        ]
        print_json({"sweep": plan.sweep, "budget_gpu_hours": plan.budget_gpu_hours, "runs": runs})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("variant", "seed", "run", "state", "changes"):
        table.add_column(name, overflow="fold")
    for row in rows:
        changes = ", ".join(f"{path} = {value}" for path, value in overrides[row.variant].items())
        table.add_row(row.variant, str(row.seed), row.id, row.state.state, changes or "the reference")
    out = console()
    out.print(table)
    left = sum(max(0.0, plan.budget_gpu_hours - row.state.compute_gpu_hours) for row in rows)
    out.print(
        f"{len(rows)} runs at scale {study.scale}, {plan.budget_gpu_hours:g} modelled GPU-hours each; "
        f"{left:g} left to train"
    )


def conclude(plan: Any, home: Home, out: Console, as_json: bool) -> None:
    """Fit, compare, print the verdict and write the page."""
    from ablations.report import write_report
    from ablations.results import read_results

    results = read_results(home, plan)
    if as_json:
        print_json(results.to_json())
    else:
        from ablations.tables import comparison_table

        out.print(comparison_table(results))
    page = write_report(home, results, now=datetime.now(UTC))
    out.print(f"report     {page}", soft_wrap=True, highlight=False)
    out.print(f"dashboard  platform dashboard --home {shlex.quote(str(home.path))}", soft_wrap=True, highlight=False)


@app.command()
def status(
    sweep: SweepArgument = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again every two seconds.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where each run of a sweep is."""
    from ablations.plan import Plan
    from ablations.progress import read_rows, status_table, to_json

    place = find_home(home)
    plan = Plan.read(place.sweep(find_sweep(place, sweep)) / "plan.json")
    rows = read_rows(place, plan)
    if as_json:
        print_json(to_json(plan, rows))
    elif watch:
        from rich.live import Live

        with Live(status_table(plan, rows), refresh_per_second=2) as live:
            while not all(row.state.state == "done" for row in rows):
                time.sleep(2)
                rows = read_rows(place, plan)
                live.update(status_table(plan, rows))
    else:
        console().print(status_table(plan, rows))
    if not all(row.state.state == "done" for row in rows):
        raise typer.Exit(unfinished_code(plan, place))


@app.command()
def logs(
    run: Annotated[str, typer.Argument(help="Run id, its first digits, or VARIANT of the sweep.")],
    sweep: Annotated[str | None, typer.Option(help="Sweep the variant belongs to; else the one last started.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the variant; else its first.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Attempt; else the last.")] = None,
    home: HomeOption = None,
) -> None:
    """Print what a run printed."""
    place = find_home(home)
    run_id = find_run(place, run, sweep, seed)
    folder = place.run(run_id)
    number = attempt or folder.read_status().get("attempt", 0)
    path = folder.log(number)
    if not path.exists():
        there = sorted(log.stem for log in (folder.path / "logs").glob("attempt-*.log"))
        raise AblationsError(f"run {run_id}: no log of attempt {number}; there are: {', '.join(there) or 'none yet'}")
    print(path.read_text(errors="replace"), end="")


def find_run(home: Home, run: str, sweep: str | None, seed: int | None) -> str:
    """The run meant by an id, its first digits, or a variant's name."""
    from ablations.errors import did_you_mean
    from ablations.plan import Plan

    ids = sorted(path.name for path in (home.path / "runs").glob("*") if path.is_dir())
    matches = [run_id for run_id in ids if run_id.startswith(run)]
    if len(matches) == 1:
        return matches[0]
    plan = Plan.read(home.sweep(find_sweep(home, sweep)) / "plan.json")
    for variant in plan.variants:
        if variant.name == run:
            runs = [planned.id for planned in variant.runs if seed in (None, planned.seed)]
            if runs:
                return runs[0]
            raise AblationsError(f"variant '{run}' has no seed {seed}; seeds are: {[r.seed for r in variant.runs]}")
    names = [variant.name for variant in plan.variants]
    raise AblationsError(f"unknown run or variant '{run}'; {did_you_mean(run, names, 'variants')}")


@app.command()
def cancel(sweep: SweepArgument = None, home: HomeOption = None) -> None:
    """Stop a sweep: running runs write a checkpoint and end, no other is started."""
    from ablations.plan import Plan
    from ablations.progress import read_rows

    place = find_home(home)
    name = find_sweep(place, sweep)
    plan = Plan.read(place.sweep(name) / "plan.json")
    (place.sweep(name) / "cancelled").touch()
    stopped = 0
    for row in read_rows(place, plan):
        if row.state.pid is not None:
            os.kill(row.state.pid, signal.SIGTERM)
            stopped += 1
    print(f"{name}: {stopped} running runs asked to stop; `platform sweep` goes on from their checkpoints")


@app.command()
def fit(
    source: Annotated[str, typer.Argument(help="CSV file with columns curve,compute,score, or a sweep.")],
    fit_from: Annotated[float | None, typer.Option("--from", min=0, help="Leave out readings up to here.")] = None,
    fit_to: Annotated[float | None, typer.Option("--to", min=0, help="Leave out readings beyond.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the sigmoid compute-performance curve (ScaleRL eq. 1)."""
    from ablations.results import fit_file, fit_sweep

    if source.endswith(".csv"):
        fits = fit_file(Path(source), fit_from, fit_to)
    else:
        place = find_home(home)
        fits = fit_sweep(place, find_sweep(place, source), fit_from, fit_to)
    if as_json:
        print_json([one.to_json() for one in fits])
    else:
        from ablations.tables import fit_table

        console().print(fit_table(fits))


@app.command()
def compare(sweep: SweepArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Compare the variants of a sweep with its reference."""
    from ablations.plan import Plan
    from ablations.results import read_results

    place = find_home(home)
    plan = Plan.read(place.sweep(find_sweep(place, sweep)) / "plan.json")
    results = read_results(place, plan)
    if as_json:
        print_json(results.to_json())
    else:
        from ablations.tables import comparison_table

        console().print(comparison_table(results))


@app.command()
def report(sweep: SweepArgument = None, home: HomeOption = None) -> None:
    """Write the report of a sweep again, one HTML file that opens anywhere."""
    from ablations.plan import Plan
    from ablations.report import write_report
    from ablations.results import read_results

    place = find_home(home)
    plan = Plan.read(place.sweep(find_sweep(place, sweep)) / "plan.json")
    print(write_report(place, read_results(place, plan), now=datetime.now(UTC)))


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path.")],
    scale: Annotated[str, typer.Option(help="Scale, by name or path.")] = "laptop",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    budget: Annotated[float, typer.Option(min=0, help="Compute, in the scale's unit.")] = 1.0,
    set_: SetOption = None,
    home: HomeOption = None,
) -> None:
    """Train one run here, in this process."""
    from ablations.resolve import load_resolved
    from ablations.run_sweep import code_version

    resolved, place = load_resolved(recipe, scale, set_ or ()), find_home(home)
    place.require_writable()
    run_id = resolved.identity(seed)
    folder = place.run(run_id)
    folder.create(resolved, seed)
    print(f"run {run_id} in {folder.path}", flush=True)
    from scalerl.train import Busy, Cancelled
    from scalerl.train import train as train_folder

    try:
        train_folder(
            folder.path,
            budget_gpu_hours=budget * resolved.compute_unit_gpu_hours,
            warm_starts=place.warm_starts,
            code_version=code_version(),
        )
    except Busy as error:
        raise AblationsError(str(error)) from error
    except Cancelled:
        raise typer.Exit(NOT_FINISHED) from None


@app.command()
def dashboard(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8501, home: HomeOption = None
) -> None:
    """Serve the page with curves, fits and verdicts on this machine."""
    import importlib.util

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
    serve([sys.executable, "-m", "streamlit", "run", str(page), *flags])


@app.command()
def mlflow(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 5000, home: HomeOption = None
) -> None:
    """Serve MLflow's own pages for the home folder's store."""
    place = find_home(home)
    store = f"sqlite:///{place.path / 'mlflow.db'}"
    serve([sys.executable, "-m", "mlflow", "ui", "--host=127.0.0.1", f"--port={port}", "--backend-store-uri", store])


def serve(command: list[str]) -> None:
    """Become the server."""
    os.execv(command[0], command)


@app.command()
def sync(sweep: SweepArgument = None, tracking_uri: TrackingOption = None, home: HomeOption = None) -> None:
    """Bring MLflow up to date with the run folders; nothing is sent twice."""
    from ablations.tracking import sync as synchronise

    place = find_home(home)
    report = synchronise(place.path, find_sweep(place, sweep), tracking_uri)
    print(report)
    if report.rows_left:
        raise typer.Exit(NOT_FINISHED)


if __name__ == "__main__":
    main()
