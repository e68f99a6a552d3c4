"""One `platform sweep`: plan, run folders, jobs, MLflow beside them. What was found is `ablations.results`."""

import hashlib
import shutil
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.expand import Study
from ablations.home import Home
from ablations.plan import Plan, PlannedRun, PlannedVariant
from ablations.progress import Progress, read_rows, summary
from ablations.state import read_state
from ablations.tracker import Tracker


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
    total = (study.sweep.budget.compute if budget is None else budget) * unit
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
        budget_gpu_hours=total,
        fit_from_gpu_hours=study.sweep.budget.fit_from * total,
        fit_to_gpu_hours=study.sweep.budget.fit_on * total,
        published={variant: fit.model_dump() for variant, fit in study.sweep.published.items()},
        variants=tuple(
            PlannedVariant(name=variant.name, overrides=variant.overrides, runs=tuple(runs[variant.name]))
            for variant in study.variants
        ),
    )


def run_sweep(
    study: Study, plan: Plan, home: Home, *, file: Path, jobs: int, tracking_uri: str | None, console: Console
) -> None:
    """Train what is missing and bring MLflow up to date.

    Raises AblationsError when the home folder cannot be written or the sweep is already being run.
    """
    home.require_writable()
    folder = home.sweep(plan.sweep)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            prepare(study, plan, home, file)
            train_missing(study, plan, home, jobs, tracking_uri, console)
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
    names = {run.id: run.variant for run in study.runs}
    missing = [run_id for run_id in names if read_state(home.run(run_id), plan.budget_gpu_hours).state != "done"]
    tracker = Tracker(home, plan, tracking_uri)
    if missing:
        console.print(
            f"{plan.sweep}: {len(missing)} of {len(names)} runs to train, {jobs} at a time, in {home.path}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        from ablations.dispatch import LocalPool  # submitit is slow to load and only needed here

        pool = LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            budget_gpu_hours=plan.budget_gpu_hours,
            threads=study.reference.recipe.threads,
            jobs=jobs,
            cancel_marker=home.sweep(plan.sweep) / "cancelled",
        )
        with Progress(home, plan, console) as progress, closing(pool.train(missing)) as events:
            for killed in events:
                if killed:
                    console.print(f"{names[killed]}: its process was killed; `platform logs {killed}` shows its output")
                progress.update()
                tracker.tick()
        console.print(f"{plan.sweep}: {summary(plan, read_rows(home, plan))}", markup=False, highlight=False)
    tracker.finish(console)
