"""The commands that stop or resubmit runs: cancel, retry."""

from typing import Annotated

import typer

from ablations.cli.named_sweeps import find_sweeps, known_variant
from ablations.cli.options import HomeOption, SweepArgument, variants_of_sweep
from ablations.cli.output import tell
from ablations.errors import AblationsError
from ablations.home.plan import Plan
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State, ask_to_stop
from ablations.nearest_name import did_you_mean
from ablations.running.reconcile import cancel_runs
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow
from ablations.text import counted

VariantOption = Annotated[
    list[str] | None,
    typer.Option("--variant", help="Only this variant; may be repeated.", autocompletion=variants_of_sweep),
]
SeedOption = Annotated[list[int] | None, typer.Option("--seed", help="Only this seed; may be repeated.")]


def cancel(
    sweep: SweepArgument = None, variant: VariantOption = None, seed: SeedOption = None, home: HomeOption = None
) -> None:
    """Stop a sweep, or some of its runs. Training runs save a checkpoint and end; waiting runs do not start."""
    for started in find_sweeps(home, sweep):
        cancel_one(started, variant, seed)


def cancel_one(started: StartedSweep, variant: list[str] | None, seed: list[int] | None) -> None:
    rows = chosen(started.plan, run_rows(started), variant, seed)
    some = bool(variant or seed)
    started.cancellation.add([row.id for row in rows] if some else None)
    cancelled, others = cancel_runs(started, [row.id for row in rows])
    known = {*cancelled, *others}
    here = [row.id for row in rows if row.state.pid is not None and row.id not in known]
    for run_id in here:
        ask_to_stop(started.run(run_id))
    asked = f"asked {counted(len(here), 'running run')} to stop" if here else "no run was training here"
    done = [asked] if here or not cancelled else []
    done += [f"cancelled {counted(len(cancelled), 'Slurm job')}"] if cancelled else []
    tell(f"{started.name}: {', '.join(done)}; to resume from the checkpoints, run `{start_command(started)}`")
    if others:
        tell(f"{counted(len(others), 'run')} not cancelled: another sweep submitted the job")
    if elsewhere := [
        row for row in rows if row.state.state == State.RUNNING and row.state.pid is None and row.id not in known
    ]:
        if started.is_at_work:  # and sees the cancellation
            tell(f"asked the command of {started.name} to stop {counted(len(elsewhere), 'run')} on other machines")
        else:
            tell(f"{counted(len(elsewhere), 'run')} not cancelled: training on another machine")


def retry(
    sweep: SweepArgument = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only runs in this state; may be repeated. Default: all failures.")
    ] = None,
    variant: VariantOption = None,
    seed: SeedOption = None,
    home: HomeOption = None,
) -> None:
    """Resubmit failed, lost and timed-out runs. They resume from their checkpoints with the current code."""
    from ablations.running.on_slurm import retry_runs

    states = named_states(state) if state else [one for one in State if one.is_failure or one == State.PREEMPTED]
    for started in find_sweeps(home, sweep):
        rows = chosen(started.plan, run_rows(started), variant, seed)
        for said in retry_runs(started, rows, states=states):
            tell(said)


def named_states(words: list[str]) -> list[State]:
    for word in words:
        if word not in list(State):
            raise AblationsError(f"--state {word}: no such state; {did_you_mean(word, list(State), 'states')}")
    return [State(word) for word in words]


def chosen(plan: Plan, rows: list[RunRow], variants: list[str] | None, seeds: list[int] | None) -> list[RunRow]:
    """The rows of these variants and seeds, or all rows if none is named; raises AblationsError for an unknown name."""
    named = {known_variant(name, plan).name for name in variants or ()}
    there = sorted({row.seed for row in rows})
    for seed in seeds or ():
        if seed not in there:
            raise AblationsError(f"no run has seed {seed}; seeds are: {', '.join(map(str, there))}")
    return [row for row in rows if (not named or row.variant in named) and row.seed in (seeds or there)]
