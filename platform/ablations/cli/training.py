"""Trains the runs of a sweep where the options say: the place, its checks and questions, and what to type next."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from ablations.cli.budget import AskedBudget
from ablations.cli.check import refuse_early
from ablations.cli.dry_run import checked_submission
from ablations.cli.exit_codes import NOT_FINISHED
from ablations.cli.options import ExecutorName
from ablations.cli.output import ask, print_json
from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.start_command import check_command
from ablations.home.started_sweep import StartedSweep
from ablations.pools.local import ThisMachine, gpus_here, most_runs_here
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.ray.driver_process import DriverProcess
from ablations.ray.order import runs_at_once, share_of, why_none
from ablations.ray.ray_site import RaySite
from ablations.running.ending import all_ended
from ablations.running.executor import Executor, InCommand
from ablations.running.on_slurm import OnSlurm
from ablations.running.run_sweep import run_sweep
from ablations.signals import handled
from ablations.slurm.commands import require_job
from ablations.slurm.limits import check_home_path
from ablations.status.progress import run_rows, to_json
from ablations.study.expand import Study
from ablations.study.side_effects import side_effects
from ablations.terminal.own_command import own_command
from ablations.terminal.screen import Screen
from ablations.tracking.beside_a_sweep import Tracker
from scalerl.recipe.command import CommandRecipe

NEXT = (("follow", "status --watch"), ("table", "compare"), ("end", "cancel"))
SEARCH_AT_ONCE = 8
"""Number of runs that a search keeps in flight on Slurm if resources.at_once is not set."""
MOST_HOURS = "ABLATIONS_MOST_HOURS"
"""Variable with the hours after which a sweep on this machine is interrupted."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of a command that trains: `TrainingOptions(home=home, executor="slurm", jobs=None, ...)`."""

    home: Home
    budget: AskedBudget | None
    executor: ExecutorName
    jobs: int | None
    yes: bool
    hold: bool = False
    after: str | None = None
    prune: bool = False
    dry_run: bool
    tracking_uri: str | None
    as_json: bool


@contextmanager
def trained(
    study: Study, started: StartedSweep, *, file: Path, options: TrainingOptions, out: Screen
) -> Iterator[bool]:
    """Train what a sweep lacks, after the quick checks; Ctrl-C, SIGTERM and SIGHUP end the command with NOT_FINISHED.

    Yields True if all runs have ended; leaving then waits for the last push to MLflow, so that results come first.
    False if jobs go on without the command; the commands to use in the meantime are then printed.
    """
    where, tracker = executor_of(study, started, options, out), Tracker(started, options.tracking_uri)
    try:
        # Handle SIGTERM and the end of a terminal like Ctrl-C, so that no job here outlives the sweep that started it.
        with handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP), ended_in_time():
            missing = {row.variant for row in run_rows(started) if not row.state.state.is_finished}
            recipes = {one.name: one.recipe for one in study.variants if one.name in missing}
            effects = side_effects(study) if recipes else []
            refuse_early(
                recipes, out, whole=check_command(started), trains_here=options.executor == "local", of_study=effects
            )
            run_sweep(study, started, file=file, executor=where, tracker=tracker, console=out)
    except KeyboardInterrupt:
        out.print(where.interrupted)
        raise typer.Exit(NOT_FINISHED) from None
    started = started.reread()  # a search has added its trials
    is_over = not where.outlives_command or all_ended(started, run_rows(started))
    if not is_over:
        where_next(started, out, options.as_json)
    yield is_over
    tracker.finish(out)


@contextmanager
def ended_in_time() -> Iterator[None]:
    """Interrupt the block, as Ctrl-C does, after the number of hours in MOST_HOURS, if that variable is set."""
    hours = os.environ.get(MOST_HOURS)
    if hours is None:
        yield
        return
    with handled(signal.default_int_handler, signal.SIGALRM):
        signal.setitimer(signal.ITIMER_REAL, float(hours) * 3600)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def executor_of(study: Study, sweep: StartedSweep, options: TrainingOptions, out: Screen) -> Executor:
    """The place where runs train according to the options, checked before anything is written."""
    if options.executor == "slurm":
        return on_slurm(study, sweep, options, out)
    given = {"--yes": options.yes, "--hold": options.hold, "--after": options.after, "--prune": options.prune}
    if useless := [name for name, value in given.items() if value]:
        raise AblationsError(f"{', '.join(useless)}: no effect without --executor slurm")
    return (on_ray if options.executor == "ray" else on_this_machine)(study, sweep, options.jobs)


def on_this_machine(study: Study, sweep: StartedSweep, jobs: int | None) -> InCommand:
    """The executor for this machine, with as many runs at a time as requested, else as many as cores and GPUs allow.

    A run gets the GPUs that it can use; a user's own program gets as many as `resources.gpus` requests, or all.
    """
    recipe = study.reference.recipe
    of_run = study.resources.num_gpus if isinstance(recipe, CommandRecipe) else recipe.most_gpus
    gpus = gpus_here() if of_run else ()
    site = ThisMachine(
        home=sweep.home,
        folder=sweep.folder / "local",
        threads=recipe.threads,
        gpus=gpus,
        gpus_of_run=of_run,
        needs_torch=not isinstance(recipe, CommandRecipe),
    )
    return InCommand(site=site, jobs=jobs or most_runs_here(recipe.total_threads, gpus, of_run))


def on_slurm(study: Study, sweep: StartedSweep, options: TrainingOptions, out: Screen) -> OnSlurm:
    """The Slurm executor, checked against the cluster before anything is written."""
    check_home_path(sweep.home.path)
    if options.after is not None:
        require_job(options.after, "--after")
    submission = checked_submission(study, options.jobs)

    def agree(num_jobs: int) -> None:
        cost = replace(submission, num_jobs=num_jobs)
        out.say(cost.text())
        if cost.needs_confirmation and not options.yes:
            why = cost.question().removesuffix("submit?")
            ask(cost.question(), without_terminal=f"{why}nothing submitted. Pass --yes to submit")

    return OnSlurm(
        resources=submission.resources,
        threads=submission.threads,
        jobs=submission.resources.at_once or SEARCH_AT_ONCE,
        hold=options.hold,
        after=options.after,
        prune=options.prune,
        agree=agree,
    )


def on_ray(study: Study, sweep: StartedSweep, jobs: int | None) -> InCommand:
    """The Ray executor, connected to a cluster and checked against it before anything else is written.

    Without `--jobs`, as many runs train at a time as fit into the cluster. With `--jobs`, Ray is asked for that many,
    so that an autoscaling cluster grows.
    """
    recipe, resources = study.reference.recipe, study.resources
    refuse_idle_devices(study.asked, recipe)
    sweep.home.require_writable()
    share = share_of(resources, threads=threads_of_node(recipe, resources))
    folder = sweep.folder / "ray"
    driver = DriverProcess(folder / "driver.log")
    nodes = [node.resources for node in driver.nodes]
    at_once = jobs or resources.at_once or runs_at_once(nodes, share)
    if not at_once:
        raise AblationsError(f"{why_none(nodes, share)}; change `resources:`, or pass --jobs if the cluster can grow")
    site = RaySite(home=sweep.home, folder=folder, share=share, threads=recipe.threads, driver=driver)
    return InCommand(site=site, jobs=at_once, holds=True)


def where_next(sweep: StartedSweep, out: Screen, as_json: bool) -> None:
    """Print the commands to use while the jobs wait and train."""
    if as_json:
        print_json(to_json(sweep.plan, run_rows(sweep)))
        return
    lines = [f"{what:11}{own_command()} {name} {sweep.name} {sweep.home.option}" for what, name in NEXT]
    out.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
