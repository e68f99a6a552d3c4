"""The commands that follow a sweep: status, logs."""

import time
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from ablations.cli.exit_codes import FAILED, NOT_FINISHED
from ablations.cli.named_sweeps import find_run, find_sweeps
from ablations.cli.options import HomeOption, JsonOption, SweepArgument, refuse_idle, runs_begun, started_sweeps
from ablations.cli.output import console, print_json, print_rows, tell
from ablations.cli.unfinished import unfinished_code
from ablations.errors import AblationsError
from ablations.files.tail import tail
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State
from ablations.report.documents.blocks import Text
from ablations.report.documents.notes import note_lines, notes_json
from ablations.report.writers.terminal import print_document
from ablations.status.failures import group_failures
from ablations.status.live_table import LiveStatus, clock
from ablations.status.progress import is_still_going, run_rows, to_json
from ablations.status.run_logs import attempt_numbers, follow_log, has_run_ended, job_logs, run_state
from ablations.status.table import MOST_ROWS, status_view
from ablations.status.units_table import NO_UNITS, units_table

WATCH_EVERY_S = 2.0


def status(
    sweep: SweepArgument = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until no run is training or waiting.")] = False,
    all_runs: Annotated[bool, typer.Option("--all", help="Show every run of a long sweep.")] = False,
    units: Annotated[
        bool, typer.Option("--units", help="Show the processes of runs on the wall clock: node and activity.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the state of each run of a sweep, when it will end, and why runs failed."""
    sweeps = find_sweeps(home, sweep)
    if watch:
        refuse_idle("--watch, which shows a live table", {"--json": as_json, "--all": all_runs, "--units": units})
    if (watch or as_json) and len(sweeps) > 1:
        names = ", ".join(one.name for one in sweeps)
        raise AblationsError(f"{sweep} has one sweep per scale; name one: {names}")
    if watch:
        with suppress(KeyboardInterrupt):
            sweeps = [watch_sweep(sweeps[0], console())]
    codes = []
    for number, one in enumerate(sweeps):
        if number:
            console().print()
        codes.append(show_status(one, all_runs=all_runs, units=units, as_json=as_json))
    if code := FAILED if FAILED in codes else max(codes):
        raise typer.Exit(code)


def show_status(sweep: StartedSweep, *, all_runs: bool, units: bool, as_json: bool) -> int:
    """Print the state of each run of a sweep; returns the exit code."""
    from ablations.status.remarked import remarked, with_warnings

    plan, rows = sweep.plan, run_rows(sweep)
    failures = group_failures(sweep.home, rows)
    warned, remarks = remarked(sweep, rows)
    if as_json:
        print_json(to_json(plan, warned, failures, remarks) | {"notes": notes_json(sweep)})
    else:
        most_rows = None if all_runs else MOST_ROWS
        bare = [with_warnings(row, ()) for row in rows]  # the remarks have them
        console().print(status_view(sweep, bare, failures=failures, remarks=remarks, now=clock(), most_rows=most_rows))
        for line in note_lines(sweep):
            console().say(line, style="dim")
        if units:
            console().print()
            print_document([units_table(rows) or Text(text=NO_UNITS)], console())
    return unfinished_code(sweep, rows)


def watch_sweep(sweep: StartedSweep, out: Console) -> StartedSweep:
    """Show a sweep until no run is training or waiting; returns the sweep with the trials that a search has added."""
    with LiveStatus(out) as progress:
        while is_still_going(sweep, progress.update(sweep)):
            time.sleep(WATCH_EVERY_S)
            sweep = sweep.reread()
    return sweep


def logs(
    run: Annotated[
        str,
        typer.Argument(
            help="Run, such as loo-loss-s0, its id or the first digits of it, or a variant.", autocompletion=runs_begun
        ),
    ],
    sweep: Annotated[
        str | None,
        typer.Option(help="Sweep of the run. Default: the last sweep started.", autocompletion=started_sweeps),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the variant. Default: its first.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Attempt to show. Default: the last.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the run ends.")] = False,
    attempts: Annotated[bool, typer.Option("--attempts", help="List the attempts and how they ended.")] = False,
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=1, help="Only the last lines.")] = None,
    home: HomeOption = None,
) -> None:
    """Print the log of a run."""
    if attempts:
        refuse_idle("--attempts, which prints a list", {"--follow": follow, "--attempt": attempt, "--lines": lines})
    if follow:
        refuse_idle("--follow", {"--lines": lines})
    place = find_home(home)
    run_id = find_run(place, run, sweep, seed)
    if attempts:
        show_attempts(place, run_id)
    elif follow:
        follow_run(place, run_id, attempt)
    else:
        print_log(place, run_id, attempt, lines)


def print_log(home: Home, run_id: str, attempt: int | None, lines: int | None = None) -> None:
    """Print the log of one attempt; for a run that never began to train, the output of its jobs."""
    folder = home.run(run_id)
    numbers = attempt_numbers(folder)
    is_done = folder.read_status().state in (State.DONE, State.STOPPED)
    of_jobs = [] if attempt or is_done else job_logs(home, run_id)
    if not of_jobs and (attempt in numbers or (attempt is None and numbers)):
        tell(last_lines(folder.log(attempt or numbers[-1]).read_text(errors="replace"), lines), end="")
        return
    if not of_jobs:
        known = f"attempts with a log: {', '.join(map(str, numbers))}" if numbers else "no attempt has a log yet"
        raise AblationsError(f"run {run_id}: no log of {f'attempt {attempt}' if attempt else 'any attempt'}; {known}")
    beside_log(f"run {run_id}: its last job ended before training began. Output of the job:")
    for path in of_jobs:
        beside_log(f"==> {path} <==")
        tell(last_lines(path.read_text(errors="replace"), lines), end="")


def last_lines(text: str, number: int | None) -> str:
    """The last lines of a log; all of it for None."""
    return text if number is None else "".join(text.splitlines(keepends=True)[-number:])


def follow_run(home: Home, run_id: str, attempt: int | None) -> None:
    """Print the log as it grows, then how the run ended."""
    folder = home.run(run_id)
    if not attempt_numbers(folder) and not has_run_ended(home, run_id):
        state = run_state(home, run_id)
        beside_log(f"run {run_id} is {state_text(state)}; waiting for its first line")
    try:
        for text in follow_log(folder, attempt, lambda: has_run_ended(home, run_id)):
            tell(text, end="")
    except KeyboardInterrupt:
        raise typer.Exit(NOT_FINISHED) from None
    if not attempt_numbers(folder):
        print_log(home, run_id, attempt)
    state = run_state(home, run_id)
    beside_log(f"run {run_id} is {state_text(state)}")
    if not state.state.is_finished:
        raise typer.Exit(FAILED if state.state.is_failure else NOT_FINISHED)


def show_attempts(home: Home, run_id: str) -> None:
    """Print when each attempt wrote its last line, and how it ended; for all but the last, the last line itself."""
    folder, state = home.run(run_id), run_state(home, run_id)
    numbers = attempt_numbers(folder)
    if not numbers:
        raise AblationsError(f"run {run_id} is {state.state} and has no attempt yet")
    rows = []
    for number in numbers:
        log = folder.log(number)
        written = datetime.fromtimestamp(log.stat().st_mtime).astimezone()
        is_last = number == numbers[-1] and state.attempt == number
        ended = state_text(state) if is_last else "".join(tail(log, 1))
        rows.append({"attempt": str(number), "last written": f"{written:%Y-%m-%d %H:%M:%S}", "ended": ended})
    print_rows(rows, kinds={"attempt": "number", "last written": "name", "ended": "prose"})


def state_text(state: RunState) -> str:
    """The state of a run with its message: `failed: loss is not finite at step 12`."""
    return f"{state.state}: {state.said}" if state.said else str(state.state)


def beside_log(text: str) -> None:
    """Print a line about the log, on standard error."""
    console(stderr=True).say(text, style="dim")
