"""The commands that train: sweep, train."""

import math
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from ablations.cli.common import (
    NOT_FINISHED,
    WRONG_INPUT,
    HomeOption,
    JsonOption,
    SetOption,
    TrackingOption,
    console,
    own_command,
    print_json,
    unfinished_code,
)
from ablations.counted import counted
from ablations.errors import AblationsError
from ablations.executors import OnSlurm, OnThisMachine
from ablations.home import Home, find_home

Executor = Literal["local", "slurm"]
SEARCH_AT_ONCE = 8
"""Runs that a search has in flight on Slurm where resources.at_once says nothing."""
NEXT = (("follow", "status --watch"), ("table", "compare"), ("end", "cancel"))

if TYPE_CHECKING:
    from ablations.expand import Study
    from ablations.plan import Plan
    from ablations.search.record import SearchRecord
    from ablations.slurm.cost import SubmissionPlan
    from ablations.slurm.resources import Resources


def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file, for example sweeps/loo.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and stop.")] = False,
    scale: Annotated[str | None, typer.Option(help="Scale to use instead of the file's.")] = None,
    set_: SetOption = None,
    budget: Annotated[float | None, typer.Option(help="Compute of each run, in the scale's unit.")] = None,
    executor: Annotated[
        Executor, typer.Option(help="Where runs are trained: on this machine, or as jobs of Slurm's.")
    ] = "local",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; else as many as there are cores, or resources.at_once.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Slurm: submit without asking, whatever it may cost.")] = False,
    hold: Annotated[
        bool, typer.Option("--hold", help="Slurm: submit, but start nothing before `scontrol release`.")
    ] = False,
    after: Annotated[str | None, typer.Option(help="Slurm: job that must have ended first.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Slurm: cancel jobs of runs that left the file.")] = False,
    tracking_uri: TrackingOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train every variant that is missing, record, fit and compare."""
    from ablations.expand import expand
    from ablations.make_plan import make_plan, sweep_name
    from ablations.progress import all_ended, read_rows
    from ablations.run_sweep import run_sweep

    if budget is not None:
        check_budget(budget)
    study = expand(file, scale=scale, sets=set_ or ())
    command = f"platform {shlex.join(sys.argv[1:])}"
    plan, place = make_plan(study, sweep_name(study, scale), budget=budget, command=command), find_home(home)
    if dry_run:
        show_plan(study, plan, place, as_json)
        if executor == "slurm" and not as_json:
            show_cost(study, plan, place, jobs)
        return
    out = console(stderr=as_json)
    if executor == "slurm":
        where = on_slurm(study, plan, place, jobs=jobs, hold=hold, after=after, prune=prune, yes=yes, out=out)
    else:
        refuse_without_slurm({"--yes": yes, "--hold": hold, "--after": after, "--prune": prune})
        threads = study.reference.recipe.threads
        where = OnThisMachine(
            threads=threads, jobs=jobs or max(1, (os.cpu_count() or 1) // study.reference.recipe.total_threads)
        )
    try:
        with terminated_as_interrupted():
            run_sweep(study, plan, place, file=file, executor=where, tracking_uri=tracking_uri, console=out)
    except KeyboardInterrupt:
        if executor == "slurm":
            out.print("left; its jobs train on, and the same command goes on with what is to decide")
        else:
            out.print("stopped; the same command goes on from the last checkpoints")
        raise typer.Exit(NOT_FINISHED) from None
    plan = place.read_plan(plan.sweep)  # a search has added its trials
    if executor == "slurm" and not all_ended(place, plan, read_rows(place, plan)):
        where_next(plan, place, out, as_json)
        return
    conclude(plan, place, out, as_json)
    if code := unfinished_code(plan, place, also_failed=("stale",)):
        raise typer.Exit(code)


def on_slurm(
    study: "Study",
    plan: "Plan",
    home: Home,
    *,
    jobs: int | None,
    hold: bool,
    after: str | None,
    prune: bool,
    yes: bool,
    out: Console,
) -> "OnSlurm":
    """What Slurm is asked for, checked against the cluster before anything is written."""
    from ablations.slurm.limits import check_home, check_on_cluster

    check_home(home.path)
    resources, threads = study.resources, study.reference.recipe.total_threads
    if jobs is not None:
        resources = resources.model_copy(update={"at_once": jobs})
    partition = check_on_cluster(study.asked, threads=threads)

    def check(num_jobs: int) -> None:
        # Of a search only the first jobs are known here; its trials are.
        trials = len(study.sweep.seeds) * study.sweep.search.trials if study.sweep.search else 0
        cost = cost_of(max(num_jobs, trials), resources, threads, partition)
        out.print(cost.text(), soft_wrap=True, highlight=False, markup=False)
        if not cost.needs_confirmation or yes:
            return
        if not sys.stdin.isatty():
            raise AblationsError(f"{cost.question().removesuffix('submit?')}nothing is submitted; --yes submits it")
        if not typer.confirm(cost.question()):
            raise typer.Exit(WRONG_INPUT)

    return OnSlurm(
        resources=resources,
        threads=threads,
        jobs=resources.at_once or SEARCH_AT_ONCE,
        hold=hold,
        after=after,
        prune=prune,
        check=check,
    )


def cost_of(num_jobs: int, resources: "Resources", threads: int, partition: str) -> "SubmissionPlan":
    """What jobs may cost at most on this cluster."""
    from ablations.slurm import commands
    from ablations.slurm.cost import submission_plan

    most = int(commands.setting("MaxArraySize"))
    return submission_plan(num_jobs, resources, threads=threads, partition=partition, max_array_size=most)


def refuse_without_slurm(options: dict[str, object]) -> None:
    """Raise AblationsError for options that mean nothing on this machine."""
    if given := [name for name, value in options.items() if value]:
        raise AblationsError(f"{', '.join(given)}: no effect without --executor slurm; leave it out")


def where_next(plan: "Plan", home: Home, out: Console, as_json: bool) -> None:
    """What to type while the jobs wait and train."""
    if as_json:
        from ablations.progress import read_rows, to_json

        print_json(to_json(plan, read_rows(home, plan)))
        return
    command = f"{own_command()} {{}} {plan.sweep} --home {shlex.quote(str(home.path))}"
    lines = [f"{what:11}{command.format(name)}" for what, name in NEXT]
    out.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)


def show_cost(study: "Study", plan: "Plan", home: Home, jobs: int | None) -> None:
    """What the jobs of the missing runs may cost at most."""
    from ablations.progress import read_rows
    from ablations.slurm.limits import check_on_cluster
    from ablations.state import ENDED

    threads = study.reference.recipe.total_threads
    resources = study.resources if jobs is None else study.resources.model_copy(update={"at_once": jobs})
    missing = sum(row.state.state not in ENDED for row in read_rows(home, plan))
    cost = cost_of(missing, resources, threads, check_on_cluster(study.asked, threads=threads))
    console().print(cost.text(), soft_wrap=True, highlight=False, markup=False)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt inside, as Ctrl-C does, so that no job outlives the sweep that started it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_budget(budget: float) -> None:
    """Raise AblationsError unless a run can reach it."""
    if not (math.isfinite(budget) and budget > 0):
        raise AblationsError(f"--budget: found {budget:g}; must be a number greater than 0")


def show_plan(study: "Study", plan: "Plan", home: Home, as_json: bool) -> None:
    """What a sweep would train, and what of it is already there."""
    from ablations.progress import read_plan_allocation, read_rows
    from ablations.rows import left_to_train

    search = None
    if study.space is not None:
        from ablations.search.loop import resume

        resumed = resume(study, plan, home)
        plan, search = resumed.plan, resumed.record
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
        print_json(
            {
                "sweep": plan.sweep,
                "budget_gpu_hours": plan.budget_gpu_hours,
                "total_gpu_hours": plan.total_gpu_hours,
                "stop": plan.stop,
                "search": search and search.to_json(),
                "runs": runs,
            }
        )
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("variant", "seed", "run", "state", "changes"):
        table.add_column(name, overflow="fold")
    for row in rows:
        changes = ", ".join(f"{path} = {value}" for path, value in overrides[row.variant].items())
        table.add_row(row.variant, str(row.seed), row.id, row.state.state, escape(changes) or "the reference")
    out = console()
    out.print(table)
    if search is not None:
        from ablations.search.tables import space_table, to_come_text

        out.print(space_table(search), to_come_text(search, len(study.sweep.seeds), plan.compute_name), sep="\n")
    if plan.total_gpu_hours is None:
        each = f"{plan.budget_gpu_hours:g} {plan.compute_name} each"
    else:
        each = f"{plan.total_gpu_hours:g} {plan.compute_name} to share, at most {plan.budget_gpu_hours:g} each"
    rules = f"; {stop_text(plan)}" if plan.stop is not None else ""
    left = left_to_train(plan, rows, read_plan_allocation(home, plan))
    out.print(
        f"{counted(len(rows), 'run')} at scale {study.scale}, {each}{rules}; {left:g} left to train",
        soft_wrap=True,
    )


def stop_text(plan: "Plan") -> str:
    """The stop rules in words: `stops a run whose gain stays below 0.01 (P > 0.9); flags a collapse`."""
    assert plan.stop is not None
    rules = []
    if plan.stop["gain_below"] is not None:
        rules.append(f"whose gain to the budget stays below {plan.stop['gain_below']} (P > {plan.stop['probability']})")
    if plan.stop["dominated"] is not None:
        rules.append(f"that ends below {plan.reference} (P > {plan.stop['dominated']})")
    collapse = f"that collapses or truncates over {plan.stop['truncation_above']:.0%} of its answers"
    if plan.stop["collapse"] == "stop":
        return f"stops a run {' or '.join([*rules, collapse])}"
    stops = f"stops a run {' or '.join(rules)}, " if rules else ""
    return f"{stops}flags a run {collapse}"


def conclude(plan: "Plan", home: Home, out: Console, as_json: bool) -> None:
    """Fit, compare, print the verdict and write the page."""
    from ablations.report import write_report
    from ablations.results import read_results
    from ablations.search.record import read_search
    from ablations.tables import comparison_table

    results, search = read_results(home, plan), read_search(home, plan)
    if as_json:
        print_json(results.to_json() | ({"search": search.to_json()} if search else {}))
    elif search is None:
        out.print(comparison_table(results))
    else:
        show_search(search, plan, home, out)
    page = write_report(home, results, now=datetime.now(UTC))
    places = f"report     {page}\ndashboard  {own_command()} dashboard --home {shlex.quote(str(home.path))}"
    out.print(places, soft_wrap=True, highlight=False, markup=False)


def show_search(search: "SearchRecord", plan: "Plan", home: Home, out: Console) -> None:
    """The trials, best first, and the best of them against the reference."""
    from ablations.results import read_results
    from ablations.search.tables import note, trials_table
    from ablations.tables import comparison_table

    names = {plan.reference, *(trial.name for trial in search.best)}
    shown = replace(plan, variants=tuple(variant for variant in plan.variants if variant.name in names))
    out.print(trials_table(search))
    out.print(comparison_table(read_results(home, shown)))
    out.print(note(search, plan.reference), soft_wrap=True, highlight=False, markup=False)


def train(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path.")],
    scale: Annotated[str, typer.Option(help="Scale, by name or path.")] = "laptop",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    budget: Annotated[float, typer.Option(help="Compute, in the scale's unit.")] = 1.0,
    set_: SetOption = None,
    home: HomeOption = None,
) -> None:
    """Train one run here, in this process."""
    from ablations.code_version import code_version
    from ablations.make_plan import check_horizon
    from ablations.resolve import load_resolved

    check_budget(budget)
    resolved, place = load_resolved(recipe, scale, set_ or ()), find_home(home)
    check_horizon(f"recipe {recipe}", resolved, budget)
    place.require_writable()
    run_id = resolved.identity(seed)
    folder = place.run(run_id)
    folder.create(resolved, seed)
    print(f"run {run_id} in {folder.path}", flush=True)
    from scalerl.judge import VerifierFailed
    from scalerl.learner import Diverged
    from scalerl.tasks import TaskError
    from scalerl.train import Busy, Cancelled
    from scalerl.train import train as train_folder

    try:
        train_folder(
            folder.path,
            budget_gpu_hours=budget * resolved.compute_unit_gpu_hours,
            warm_starts=place.warm_starts,
            code_version=code_version(),
        )
    except (Busy, Diverged, TaskError, VerifierFailed) as error:
        raise AblationsError(f"run {run_id}: {error}") from error
    except Cancelled:
        print("stopped; the same command goes on from the checkpoint")
        raise typer.Exit(NOT_FINISHED) from None
