"""One `platform sweep`: plan, run folders, jobs, MLflow beside them. What was found is `ablations.results`."""

import hashlib
import shutil
from contextlib import closing
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.counted import counted
from ablations.errors import AblationsError
from ablations.expand import Study
from ablations.home import Home
from ablations.plan import Plan, PlannedRun, PlannedVariant
from ablations.progress import Progress, read_plan_allocation, read_rows, status_table, summary
from ablations.slurm.states import SlurmStates
from ablations.state import ENDED, ask_to_stop
from ablations.steering.allocation import FIRST_EVALUATIONS, evaluation_gpu_hours, least_share
from ablations.tracker import Tracker
from scalerl.recipe import ResolvedRecipe

Executor = Literal["local", "slurm"]


def sweep_name(study: Study, scale_option: str | None) -> str:
    """The name of the sweep's folder: with `--scale` or `--set` it is another study than the file's own.

    `loo`, `loo@smoke` at another scale, `loo+1f0c9a` with the settings whose hash that is.
    """
    name = study.sweep.name
    if scale_option not in (None, study.sweep.scale):
        name += f"@{study.scale}"
    if study.sets:
        name += "+" + hashlib.sha256("\n".join(sorted(study.sets)).encode()).hexdigest()[:6]
    return name


def make_plan(study: Study, name: str, *, budget: float | None, command: str) -> Plan:
    """The plan of a study; `budget` replaces the file's, both in the scale's compute unit."""
    unit = study.reference.recipe.compute_unit_gpu_hours
    compute = (study.sweep.budget.compute if budget is None else budget) * unit
    for variant in study.variants:
        check_horizon(f"sweep '{study.sweep.name}', variant '{variant.name}'", variant.recipe, compute / unit)
    stop, total = study.sweep.stop, study.sweep.budget.total
    runs: dict[str, list[PlannedRun]] = {}
    for run in study.runs:
        runs.setdefault(run.variant, []).append(PlannedRun(seed=run.seed, id=run.id))
    return Plan(
        sweep=name,
        doc=study.sweep.doc,
        command=command,
        reference=study.reference.name,
        scale=study.scale,
        compute_unit_gpu_hours=unit,
        compute_name=study.reference.recipe.cluster.compute_name,
        budget_gpu_hours=compute,
        fit_from_gpu_hours=study.sweep.budget.fit_from * compute,
        fit_to_gpu_hours=study.sweep.budget.fit_on * compute,
        fit=study.sweep.fit.model_dump(),
        total_gpu_hours=None if total is None else checked_total(study, total * unit, compute),
        stop=stop and stop.model_dump(),
        search=study.space is not None,
        published={variant: fit.model_dump() for variant, fit in study.sweep.published.items()},
        variants=tuple(
            PlannedVariant(name=variant.name, overrides=variant.overrides, runs=tuple(runs[variant.name]))
            for variant in study.variants
        ),
    )


def check_horizon(name: str, recipe: ResolvedRecipe, compute: float) -> None:
    """Raise AblationsError where the learning rate of what `name` says would be 0 before its budget is spent."""
    try:
        recipe.check_budget(compute)
    except ValueError as error:
        raise AblationsError(f"{name}: {error}") from None


def checked_total(study: Study, total: float, compute: float) -> float:
    """The GPU-hours of all runs together; AblationsError when too few for a first share, or as many as without it."""
    recipe, num_runs = study.reference.recipe, len(study.runs)
    fit_from = study.sweep.budget.fit_from * compute
    least, whole = num_runs * least_share(every=evaluation_gpu_hours(recipe), fit_from=fit_from), num_runs * compute
    if not least <= total < whole:
        unit = recipe.compute_unit_gpu_hours
        raise AblationsError(
            f"sweep '{study.sweep.name}': budget.total: found {total / unit:g}; must be at least {least / unit:g}, "
            f"so that each of {num_runs} runs has {FIRST_EVALUATIONS} evaluations to be judged by, and below "
            f"{whole / unit:g}, which gives each its compute of {compute / unit:g} without any sharing"
        )
    return total


def run_sweep(
    study: Study,
    plan: Plan,
    home: Home,
    *,
    file: Path,
    executor: Executor,
    jobs: int,
    tracking_uri: str | None,
    console: Console,
) -> None:
    """Train what is missing and bring MLflow up to date, or leave what is missing to Slurm.

    Raises AblationsError when the home folder cannot be written or the sweep is already being run.
    """
    home.require_writable()
    folder = home.sweep(plan.sweep)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            if executor == "slurm":
                prepare(study, plan, home, file)
                submit_missing(study, plan, home, console)
            elif study.space is None:
                prepare(study, plan, home, file)
                train_missing(study, plan, home, jobs, tracking_uri, console)
            else:
                from ablations.search.loop import prepare_search, resume, run_search

                search = resume(study, plan, home)
                prepare_search(search, home)
                prepare(search.study, search.plan, home, file)
                run_search(search, home, jobs, tracking_uri, console)
    except Timeout:
        raise AblationsError(
            f"sweep '{plan.sweep}' is already being run from another process; `platform status {plan.sweep}` shows it"
        ) from None


def prepare(study: Study, plan: Plan, home: Home, file: Path) -> None:
    """Write the plan and make the run folders."""
    folder = home.sweep(plan.sweep)
    (folder / "cancelled").unlink(missing_ok=True)
    shutil.copyfile(file, folder / "sweep.yaml")
    plan.write(folder / "plan.json")
    for run in study.runs:
        home.run(run.id).create(run.recipe, run.seed)


def train_missing(study: Study, plan: Plan, home: Home, jobs: int, tracking_uri: str | None, console: Console) -> None:
    """Dispatch the runs that have not reached the budget, and keep MLflow informed beside them."""
    from ablations.steering.steering import Steering  # loads SciPy, which --dry-run does without

    names = {run.id: run.variant for run in study.runs}
    steering = Steering(study, plan, home)
    missing = steering.begin()
    for run_id in steering.stopped:  # by a sweep that was killed: its jobs live on
        ask_to_stop(home.run(run_id))
    tracker = Tracker(home, plan, tracking_uri)
    if missing:
        num_missing = f"{len(missing)} of {counted(len(names), 'run')}"
        say(console, f"{plan.sweep}: {num_missing} to train, {jobs} at a time, in {home.path}")
        from ablations.dispatch import LocalPool  # submitit is slow to load and only needed here

        pool = LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            threads=study.reference.recipe.threads,
            jobs=jobs,
            cancel_marker=home.sweep(plan.sweep) / "cancelled",
        )
        for run_id, budget_gpu_hours in missing.items():
            pool.add(run_id, budget_gpu_hours)
        with Progress(home, plan, console) as progress, closing(pool.work()) as events:
            for killed in events:
                if killed:
                    console.print(f"{names[killed]}: its process was killed; `platform logs {killed}` shows its output")
                for said in steering.steer(pool):
                    say(console, said)
                progress.update()
                tracker.tick()
        say(console, f"{plan.sweep}: {summary(plan, read_rows(home, plan), read_plan_allocation(home, plan))}")
    say_decisions(plan, home, console)
    tracker.finish(console)


def submit_missing(study: Study, plan: Plan, home: Home, console: Console) -> None:
    """Give Slurm every run that is not done and has no job there, and return; the jobs need nothing of us any more."""
    from ablations.slurm.pool import SlurmPool  # submitit is slow to load and only needed here

    pool = SlurmPool(
        home=home, sweep=plan.sweep, resources=study.sweep.resources, threads=study.reference.recipe.threads
    )
    for name in pool.forget_interrupted():
        say(console, f"{plan.sweep}: {name} was interrupted while it was submitted; its jobs, if any, are cancelled")
    slurm = SlurmStates(home, fresh=True)
    missing = {
        row.id: plan.budget_gpu_hours
        for row in read_rows(home, plan)
        if row.state.state not in (*ENDED, "running") and not slurm.is_in_queue(row.id)
    }
    for submission in pool.submit(missing):
        runs = counted(len(submission.runs), "run")
        say(console, f"{plan.sweep}: job {submission.job} trains {runs}; `platform status -w` follows it")


def say_decisions(plan: Plan, home: Home, console: Console) -> None:
    """Which runs were stopped or given more, and why; nothing for a sweep that does neither."""
    if plan.stop is None and plan.total_gpu_hours is None:
        return
    allocation = read_plan_allocation(home, plan)
    console.print(status_table(plan, read_rows(home, plan), allocation))
    if allocation and allocation.finished:
        say(console, f"{plan.sweep}: {counted(len(allocation.rounds), 'round')}; {allocation.finished}")


def say(console: Console, text: str) -> None:
    """One line as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
