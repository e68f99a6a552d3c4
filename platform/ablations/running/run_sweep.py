"""One `platform sweep`: writes its plan and run folders, and trains its runs. `ablations.findings.results` reads the
results.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.declared import Declaration, declare
from ablations.home.notifications import require_address
from ablations.home.started_sweep import StartedSweep
from ablations.running.executor import Executor
from ablations.search.loop import prepare_search, resume, train_trials
from ablations.status.live_table import say
from ablations.study.expand import Study
from ablations.tracking.beside_a_sweep import Tracker
from scalerl.credentials import without_secrets
from scalerl.durable import write_atomically


def run_sweep(
    study: Study,
    sweep: StartedSweep,
    *,
    file: Path,
    executor: Executor,
    tracker: Tracker,
    console: Console,
) -> None:
    """Train what is missing and begin the last push to MLflow; if the jobs need no command, submit them and return.

    Raises AblationsError if the home folder is not writable, the address of a webhook is missing, or another process
    runs the sweep.
    """
    sweep.home.require_writable()
    require_address(sweep)
    with locked(sweep):
        if study.space is not None:  # a search adds its trials to the plan while it trains
            search = resume(study, sweep)
            executor.ask(search.sweep, search.record.num_to_come * len(study.sweep.seeds))
            prepare_search(search)
            say_declared(search.sweep, prepare(search.study, search.sweep, file), console)
            train_trials(search, executor.pool(search.sweep, console), executor.jobs, tracker, console)
            return
        executor.ask(sweep)
        say_declared(sweep, prepare(study, sweep, file), console)
        executor.train(study, sweep, tracker, console)


@contextmanager
def locked(sweep: StartedSweep) -> Iterator[None]:
    """Hold the sweep's lock, so that one command at a time works on it. AblationsError if another process holds it."""
    sweep.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(sweep.lock, timeout=0):
            yield
    except Timeout:
        raise AblationsError(
            f"another process already runs sweep '{sweep.name}'; to see its state, run "
            f"`platform status {sweep.name}{sweep.home.end_of_command}`"
        ) from None


def prepare(study: Study, sweep: StartedSweep, file: Path) -> Declaration:
    """Write the plan, seal the claims and the design, and create the run folders."""
    sweep.cancellation.lift()
    write_atomically(sweep.folder / "sweep.yaml", without_secrets(file.read_text()).encode())
    sweep.write_plan()
    for run in study.runs:
        sweep.run(run.id).create(run.recipe, run.seed)
    return declare(sweep)


def say_declared(sweep: StartedSweep, declared: Declaration, console: Console) -> None:
    """Print when the claims of a study were declared; nothing for a study without claims."""
    if sweep.plan.claims:
        say(console, f"{sweep.name}: claims and design declared {declared.when} (sha256 {declared.sha256[:12]})")
