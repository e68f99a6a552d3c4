"""One `platform sweep`: run folders, jobs, MLflow beside them. What was found is `ablations.verdict.results`."""

import shutil
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.pools.pool import Ended, Pool
from ablations.running.ending import all_ended
from ablations.running.on_slurm import OnSlurm
from ablations.running.on_this_machine import OnThisMachine
from ablations.status.live import Progress, say
from ablations.status.progress import run_rows
from ablations.status.table import status_table, summary
from ablations.study.expand import Study
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker


def run_sweep(
    study: Study,
    sweep: StartedSweep,
    *,
    file: Path,
    executor: OnThisMachine | OnSlurm,
    tracking_uri: str | None,
    console: Console,
) -> None:
    """Train what is missing and bring MLflow up to date; on Slurm submit it and return, unless the sweep decides while
    it trains.

    Raises AblationsError when the home folder cannot be written or the sweep is already being run.
    """
    sweep.home.require_writable()
    sweep.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(sweep.lock, timeout=0):
            if study.space is None:
                if isinstance(executor, OnSlurm):
                    executor.ask(sweep)
                prepare(study, sweep, file)
                if isinstance(executor, OnSlurm) and not sweep.plan.is_steered:
                    submit_missing(sweep, executor, tracking_uri, console)
                else:
                    train_missing(study, sweep, executor.pool(sweep, console), tracking_uri, console)
            else:
                from ablations.search.loop import prepare_search, resume, run_search

                search = resume(study, sweep)
                if isinstance(executor, OnSlurm):
                    executor.ask(search.sweep, search.record.num_to_come * len(study.sweep.seeds))
                prepare_search(search)
                prepare(search.study, search.sweep, file)
                run_search(search, executor.pool(search.sweep, console), executor.jobs, tracking_uri, console)
    except Timeout:
        raise AblationsError(
            f"sweep '{sweep.name}' is already being run from another process; `platform status {sweep.name}` shows it"
        ) from None


def prepare(study: Study, sweep: StartedSweep, file: Path) -> None:
    """Write the plan and make the run folders."""
    sweep.cancellation.lift()
    shutil.copyfile(file, sweep.folder / "sweep.yaml")
    sweep.write_plan()
    for run in study.runs:
        sweep.run(run.id).create(run.recipe, run.seed)


def train_missing(study: Study, sweep: StartedSweep, pool: Pool, tracking_uri: str | None, console: Console) -> None:
    """Dispatch the runs that have not reached the budget, and keep MLflow informed beside them."""
    from ablations.steering.steering import Steering  # loads SciPy, which --dry-run does without

    names = {run.id: run.variant for run in study.runs}
    steering = Steering(study, sweep)
    missing = steering.begin()
    for run_id in steering.stopped:  # by a sweep that was killed: its jobs live on
        pool.stop(run_id)
    tracker = Tracker(sweep, tracking_uri)
    if missing:
        say(console, f"{sweep.name}: {len(missing)} of {counted(len(names), 'run')} to train{pool.where}")
        for run_id, budget_gpu_hours in missing.items():
            pool.add(run_id, budget_gpu_hours)
        with Progress(sweep, console) as progress, closing(pool.work()) as events:
            for event in events:
                if isinstance(event, Ended):
                    say(console, f"{names[event.run]}: {event.why}")
                for said in steering.steer(pool):
                    say(console, said)
                progress.update()
                tracker.tick()
        say(console, f"{sweep.name}: {summary(sweep.plan, run_rows(sweep), sweep.read_allocation())}")
    say_decisions(sweep, console)
    tracker.finish(console)


def submit_missing(sweep: StartedSweep, executor: OnSlurm, tracking_uri: str | None, console: Console) -> None:
    """Give Slurm every run that is not done and has no job there; the jobs need nothing of us any more."""
    pool = executor.pool(sweep, console)
    for run in sweep.plan.runs:
        pool.add(run.id, sweep.plan.budget_gpu_hours)
    for submission in pool.submit():
        say(console, f"{sweep.name}: job {submission.job} trains {counted(len(submission.runs), 'run')}")
    rows = run_rows(sweep)
    say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
    if all_ended(sweep, rows):
        Tracker(sweep, tracking_uri).finish(console)


def say_decisions(sweep: StartedSweep, console: Console) -> None:
    """Which runs were stopped or given more, and why; nothing for a sweep that does neither."""
    if not sweep.plan.is_steered:
        return
    allocation = sweep.read_allocation()
    console.print(status_table(sweep.plan, run_rows(sweep), allocation))
    if allocation and allocation.finished:
        say(console, f"{sweep.name}: {counted(len(allocation.rounds), 'round')}; {allocation.finished}")
