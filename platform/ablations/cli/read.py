"""The commands that read: status, logs, fit, compare, report."""

import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ablations.cli.common import (
    FAILED,
    HomeOption,
    JsonOption,
    SweepArgument,
    TaskOption,
    console,
    find_plan,
    find_sweep,
    print_json,
    unfinished_code,
)
from ablations.errors import AblationsError, did_you_mean
from ablations.fit_options import Auto, FitSettings, Loss, R0Mode
from ablations.home import Home, find_home
from ablations.state import is_locked

WATCH_EVERY_S = 2.0


def status(
    sweep: SweepArgument = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again until nothing trains any more.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where each run of a sweep is."""
    from ablations.progress import read_plan_allocation, read_rows, status_table, to_json

    place, plan = find_plan(home, sweep)
    rows = read_rows(place, plan)
    if as_json:
        print_json(to_json(plan, rows))
    elif watch:
        from rich.live import Live

        lock = place.sweep(plan.sweep) / "lock"
        table = status_table(plan, rows, read_plan_allocation(place, plan))
        with Live(table, console=console(), refresh_per_second=2) as live:
            while is_locked(lock) or any(row.state.pid is not None for row in rows):
                time.sleep(WATCH_EVERY_S)
                rows = read_rows(place, plan)
                live.update(status_table(plan, rows, read_plan_allocation(place, plan)))
    else:
        console().print(status_table(plan, rows, read_plan_allocation(place, plan)))
    if code := unfinished_code(plan, place):
        raise typer.Exit(code)


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
    ids = sorted(path.name for path in (home.path / "runs").glob("*") if path.is_dir())
    matches = [run_id for run_id in ids if run_id.startswith(run)]
    if len(matches) == 1:
        return matches[0]
    plan = home.read_plan(find_sweep(home, sweep))
    for variant in plan.variants:
        if variant.name == run:
            runs = [planned.id for planned in variant.runs if seed in (None, planned.seed)]
            if runs:
                return runs[0]
            seeds = ", ".join(str(planned.seed) for planned in variant.runs)
            raise AblationsError(f"variant '{run}' has no seed {seed}; seeds are: {seeds}")
    names = [variant.name for variant in plan.variants]
    raise AblationsError(f"unknown run or variant '{run}'; {did_you_mean(run, names, 'variants')}")


def fit(
    source: Annotated[str, typer.Argument(help="CSV file with columns curve,compute,score, or a sweep.")],
    fit_from: Annotated[
        str | None, typer.Option("--from", help='Leave out readings up to here; "auto": until they follow the law.')
    ] = None,
    fit_to: Annotated[float | None, typer.Option("--to", help="Leave out readings beyond.")] = None,
    r0: Annotated[R0Mode | None, typer.Option(help="How R_0 is tied to the reading before RL.")] = None,
    loss: Annotated[Loss | None, typer.Option(help="huber: outliers count less.")] = None,
    task: TaskOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why to believe each fit, and why not.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the sigmoid compute-performance curve (ScaleRL eq. 1); exit code 1 when no curve can be fitted."""
    from ablations.results import fit_file, fit_sweep

    first = check_cutoff(fit_from)
    check_end(fit_to, first)
    given = {"fit_from": first, "fit_to": fit_to, "r0": r0, "loss": loss, "task": task}
    settings = {name: value for name, value in given.items() if value is not None}
    if source.lower().endswith(".csv"):
        if task is not None:
            raise AblationsError(f"--task {task} has no effect on a CSV file, whose curves have names; leave it out")
        fits = fit_file(Path(source), FitSettings(**settings))
    else:
        place = find_home(home)
        fits = fit_sweep(place, find_sweep(place, source), **settings)
    if as_json:
        print_json([one.explained() if explain else one.to_json() for one in fits])
    else:
        from ablations.tables import fit_table, fit_words

        console().print(fit_table(fits))
        for one in fits if explain else ():
            console().print(fit_words(one))
    if not any(one.fit for one in fits):
        raise typer.Exit(FAILED)


def check_cutoff(text: str | None) -> float | Auto | None:
    """The compute after which readings count, "auto", or None; AblationsError when it is none of them."""
    if text is None or text == "auto":
        return text
    try:
        compute = float(text)
    except ValueError:
        compute = -1.0
    if not 0 <= compute < math.inf:
        raise AblationsError(f'--from: found {text!r}; must be a compute of 0 or more, or "auto"')
    return compute


def check_end(fit_to: float | None, fit_from: float | Auto | None) -> None:
    """AblationsError when no compute lies beyond `fit_from` and up to `fit_to`."""
    if fit_to is None:
        return
    if not fit_to > 0:
        raise AblationsError(f"--to: found {fit_to:g}; must be a compute above 0")
    if isinstance(fit_from, float) and fit_from >= fit_to:
        raise AblationsError(f"--from: found {fit_from:g}; must lie below --to, which is {fit_to:g}")


def compare(
    sweep: SweepArgument = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="As arXiv 2510.13786 does, to reproduce it: its grid, its rule of 0.02.")
    ] = False,
    task: TaskOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the variants of a sweep with its reference."""
    from ablations.results import read_results
    from ablations.task_curves import with_task

    place, plan = find_plan(home, sweep)
    results = read_results(place, with_task(place, plan, task))
    if paper:
        from ablations.paper_mode import paper_comparison, paper_table

        comparison = paper_comparison(results)
        if as_json:
            print_json({"sweep": results.plan.sweep} | comparison.to_json())
        else:
            plan = results.plan
            console().print(paper_table(comparison, sweep=plan.sweep, compute_name=plan.compute_name))
    elif as_json:
        print_json(results.to_json())
    else:
        from ablations.tables import comparison_table

        console().print(comparison_table(results))


def report(sweep: SweepArgument = None, task: TaskOption = None, home: HomeOption = None) -> None:
    """Write the report of a sweep again, one HTML file that opens anywhere."""
    from ablations.report import write_report
    from ablations.results import read_results
    from ablations.task_curves import with_task

    place, plan = find_plan(home, sweep)
    print(write_report(place, read_results(place, with_task(place, plan, task)), now=datetime.now(UTC)))
