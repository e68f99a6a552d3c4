"""One `platform sweep`: run folders, jobs, MLflow beside them. What was found is `ablations.verdict.results`."""

import shutil
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.allocation import read_plan_allocation
from ablations.home.cancellation import cancellation
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.pools.pool import Ended, Pool
from ablations.running.ending import all_ended
from ablations.running.on_slurm import OnSlurm
from ablations.running.on_this_machine import OnThisMachine
from ablations.status.live import Progress, say
from ablations.status.progress import read_rows
from ablations.status.table import status_table, summary
from ablations.study.expand import Study
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker


def run_sweep(
    study: Study,
    plan: Plan,
    home: Home,
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
    home.require_writable()
    folder = home.sweep(plan.sweep)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            if study.space is None:
                if isinstance(executor, OnSlurm):
                    executor.ask(home, plan)
                prepare(study, plan, home, file)
                if isinstance(executor, OnSlurm) and not plan.is_steered:
                    submit_missing(plan, home, executor, tracking_uri, console)
                else:
                    train_missing(study, plan, home, executor.pool(home, plan, console), tracking_uri, console)
            else:
                from ablations.search.loop import prepare_search, resume, run_search

                search = resume(study, plan, home)
                if isinstance(executor, OnSlurm):
                    executor.ask(home, search.plan, search.record.num_to_come * len(study.sweep.seeds))
                prepare_search(search, home)
                prepare(search.study, search.plan, home, file)
                pool = executor.pool(home, search.plan, console)
                run_search(search, home, pool, executor.jobs, tracking_uri, console)
    except Timeout:
        raise AblationsError(
            f"sweep '{plan.sweep}' is already being run from another process; `platform status {plan.sweep}` shows it"
        ) from None


def prepare(study: Study, plan: Plan, home: Home, file: Path) -> None:
    """Write the plan and make the run folders."""
    folder = home.sweep(plan.sweep)
    cancellation(home, plan.sweep).lift()
    shutil.copyfile(file, folder / "sweep.yaml")
    plan.write(folder / "plan.json")
    for run in study.runs:
        home.run(run.id).create(run.recipe, run.seed)


def train_missing(study: Study, plan: Plan, home: Home, pool: Pool, tracking_uri: str | None, console: Console) -> None:
    """Dispatch the runs that have not reached the budget, and keep MLflow informed beside them."""
    from ablations.steering.steering import Steering  # loads SciPy, which --dry-run does without

    names = {run.id: run.variant for run in study.runs}
    steering = Steering(study, plan, home)
    missing = steering.begin()
    for run_id in steering.stopped:  # by a sweep that was killed: its jobs live on
        pool.stop(run_id)
    tracker = Tracker(home, plan, tracking_uri)
    if missing:
        say(console, f"{plan.sweep}: {len(missing)} of {counted(len(names), 'run')} to train{pool.where}")
        for run_id, budget_gpu_hours in missing.items():
            pool.add(run_id, budget_gpu_hours)
        with Progress(home, plan, console) as progress, closing(pool.work()) as events:
            for event in events:
                if isinstance(event, Ended):
                    say(console, f"{names[event.run]}: {event.why}")
                for said in steering.steer(pool):
                    say(console, said)
                progress.update()
                tracker.tick()
        say(console, f"{plan.sweep}: {summary(plan, read_rows(home, plan), read_plan_allocation(home, plan))}")
    say_decisions(plan, home, console)
    tracker.finish(console)


def submit_missing(plan: Plan, home: Home, executor: OnSlurm, tracking_uri: str | None, console: Console) -> None:
    """Give Slurm every run that is not done and has no job there; the jobs need nothing of us any more."""
    pool = executor.pool(home, plan, console)
    for variant in plan.variants:
        for run in variant.runs:
            pool.add(run.id, plan.budget_gpu_hours)
    for submission in pool.submit():
        say(console, f"{plan.sweep}: job {submission.job} trains {counted(len(submission.runs), 'run')}")
    rows = read_rows(home, plan)
    say(console, f"{plan.sweep}: {summary(plan, rows)}")
    if all_ended(home, plan, rows):
        Tracker(home, plan, tracking_uri).finish(console)


def say_decisions(plan: Plan, home: Home, console: Console) -> None:
    """Which runs were stopped or given more, and why; nothing for a sweep that does neither."""
    if plan.stop is None and plan.total_gpu_hours is None:
        return
    allocation = read_plan_allocation(home, plan)
    console.print(status_table(plan, read_rows(home, plan), allocation))
    if allocation and allocation.finished:
        say(console, f"{plan.sweep}: {counted(len(allocation.rounds), 'round')}; {allocation.finished}")
