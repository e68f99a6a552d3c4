"""One `platform sweep`: its plan and run folders are written, and its runs trained. `ablations.findings.results` reads
what came of it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.running.executor import Executor
from ablations.study.expand import Study


def run_sweep(
    study: Study,
    sweep: StartedSweep,
    *,
    file: Path,
    executor: Executor,
    tracking_uri: str | None,
    console: Console,
) -> None:
    """Train what is missing and bring MLflow up to date; where jobs need no command, submit them and return.

    Raises AblationsError if the home folder cannot be written, or if another process runs the sweep.
    """
    sweep.home.require_writable()
    with locked(sweep):
        if study.space is not None:
            run_search(study, sweep, file, executor, tracking_uri, console)
            return
        executor.ask(sweep)
        prepare(study, sweep, file)
        executor.train(study, sweep, tracking_uri, console)


def run_search(
    study: Study, sweep: StartedSweep, file: Path, executor: Executor, tracking_uri: str | None, console: Console
) -> None:
    """The same for a search, which adds its trials to the plan while it trains."""
    from ablations.search.loop import prepare_search, resume, train_trials  # few sweeps are searches

    search = resume(study, sweep)
    executor.ask(search.sweep, search.record.num_to_come * len(study.sweep.seeds))
    prepare_search(search)
    prepare(search.study, search.sweep, file)
    train_trials(search, executor.pool(search.sweep, console), executor.jobs, tracking_uri, console)


@contextmanager
def locked(sweep: StartedSweep) -> Iterator[None]:
    """The sweep's lock, so that one command at a time works on it."""
    sweep.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(sweep.lock, timeout=0):
            yield
    except Timeout:
        raise AblationsError(
            f"another process already runs sweep '{sweep.name}'; `platform status {sweep.name}` shows it"
        ) from None


def prepare(study: Study, sweep: StartedSweep, file: Path) -> None:
    """Write the plan and make the run folders."""
    sweep.cancellation.lift()
    shutil.copyfile(file, sweep.folder / "sweep.yaml")
    sweep.write_plan()
    for run in study.runs:
        sweep.run(run.id).create(run.recipe, run.seed)
