"""One `platform sweep` from its study to its verdict: plan, run folders, jobs, MLflow, comparison, report."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.expand import Study
from ablations.home import Home
from ablations.ledger import Ledger, ledger_path
from ablations.plan import Plan, PlannedRun, PlannedVariant
from ablations.progress import Progress, read_rows, summary
from ablations.state import read_state

SYNC_LIMIT_S = 120.0
"""Seconds the sweep command waits for MLflow at its end; `platform sync` goes on where that stopped."""


def sweep_name(study: Study, scale_option: str | None) -> str:
    """The sweep's own name, and `name@scale` when `--scale` asks for another scale than the file's."""
    name, scale = study.sweep.name, study.sweep.scale
    return name if scale_option in (None, scale) else f"{name}@{study.scale}"


def make_plan(study: Study, name: str, budget: float | None) -> Plan:
    """The plan of a study; `budget` replaces the file's, both in the scale's compute unit."""
    unit = study.reference.recipe.compute_unit_gpu_hours
    total = (study.sweep.budget.compute if budget is None else budget) * unit
    runs: dict[str, list[PlannedRun]] = {}
    for run in study.runs:
        runs.setdefault(run.variant, []).append(PlannedRun(seed=run.seed, id=run.id))
    return Plan(
        sweep=name,
        doc=study.sweep.doc,
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
) -> bool:
    """Train what is missing and bring MLflow up to date; whether every run reached the budget.

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
    return all(row.state.state == "done" for row in read_rows(home, plan))


def prepare(study: Study, plan: Plan, home: Home, file: Path) -> None:
    """Write the plan and make the run folders."""
    folder = home.sweep(plan.sweep)
    (folder / "cancelled").unlink(missing_ok=True)
    shutil.copyfile(file, folder / "sweep.yaml")
    plan_path = folder / "plan.json"
    if not plan_path.exists() or Plan.read(plan_path) != plan:
        plan.write(plan_path)
    for run in study.runs:
        home.run(run.id).create(run.recipe, run.seed)


def train_missing(study: Study, plan: Plan, home: Home, jobs: int, tracking_uri: str | None, console: Console) -> None:
    """Dispatch the runs that have not reached the budget, and keep MLflow informed beside them."""
    run_ids = list(dict.fromkeys(run.id for run in study.runs))
    missing = [run_id for run_id in run_ids if read_state(home.run(run_id), plan.budget_gpu_hours).state != "done"]
    tracker = Tracker(home, plan.sweep, tracking_uri)
    if missing:
        console.print(f"{plan.sweep}: {len(missing)} of {len(run_ids)} runs to train, {jobs} at a time, in {home.path}")
        from ablations.dispatch import LocalPool  # submitit is slow to load and only needed here

        pool = LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            budget_gpu_hours=plan.budget_gpu_hours,
            threads=study.reference.recipe.threads,
            jobs=jobs,
            code_version=code_version(),
            cancel_marker=home.sweep(plan.sweep) / "cancelled",
        )
        with Progress(home, plan, console) as progress:
            pool.train(missing, and_then(progress.update, tracker.tick))
        console.print(f"{plan.sweep}: {summary(plan, read_rows(home, plan))}")
    tracker.finish(console)


def and_then(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    """A call that makes both calls."""

    def both() -> None:
        first()
        second()

    return both


class Tracker:
    """Runs `platform sync` beside the training: one process at a time, started when a run has ended since the last."""

    def __init__(self, home: Home, sweep: str, tracking_uri: str | None) -> None:
        self._home, self._sweep, self._uri = home, sweep, tracking_uri
        self._process: subprocess.Popen[str] | None = None
        self._ended = self._count_ended()

    def _count_ended(self) -> int:
        plan = Plan.read(self._home.sweep(self._sweep) / "plan.json")
        return sum(row.state.state in ("done", "failed") for row in read_rows(self._home, plan))

    def tick(self) -> None:
        """Start a synchroniser if there is something new and none is at work."""
        if self._process and self._process.poll() is None:
            return
        ended = self._count_ended()
        if ended > self._ended:
            self._ended = ended
            self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "ablations.cli", "sync", self._sweep, "--home", str(self._home.path)]
        command += ["--tracking-uri", self._uri] if self._uri else []
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )

    def finish(self, console: Console) -> None:
        """Bring MLflow up to date if it is not, and say what is left."""
        plan = Plan.read(self._home.sweep(self._sweep) / "plan.json")
        if Ledger.read(ledger_path(self._home, self._sweep)).is_current(self._home, plan):
            return
        try:
            if self._process:
                self._process.communicate(timeout=SYNC_LIMIT_S)
            self._start()
            assert self._process is not None
            output, _ = self._process.communicate(timeout=SYNC_LIMIT_S)
            console.print(output.strip().splitlines()[-1] if output.strip() else "MLflow: nothing said", markup=False)
        except subprocess.TimeoutExpired:
            assert self._process is not None
            self._process.kill()
            console.print(f"MLflow did not answer in time; `platform sync {self._sweep}` brings it up to date later")


def code_version() -> str:
    """Commit of the source tree the platform runs from, `+dirty` when it was edited since; else the package version."""
    source = Path(__file__).resolve().parent
    git = ["git", "-C", str(source)]
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()
        edited = subprocess.run(
            [*git, "status", "--porcelain", "--", str(source), str(source.parents[1] / "trainer")],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        from importlib.metadata import version

        return version("ablations")
    return commit + ("+dirty" if edited else "")
