"""A sweep taken from its home folder, with the runs that no other sweep has."""

import shutil
from dataclasses import dataclass

from filelock import FileLock, Timeout

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.status.progress import is_still_going, run_rows


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """What would go: `Deletion(sweep=loo, runs=("81d2f0a95c3b",), shared=2, num_bytes=48211)`."""

    sweep: StartedSweep
    runs: tuple[str, ...]
    """Those that no other sweep has, as far as they have begun."""
    shared: int
    """Runs that other sweeps have too; they stay."""
    num_bytes: int
    """Of the runs and of the sweep's own folder."""


def what_goes(sweep: StartedSweep) -> Deletion:
    """What deleting a sweep would take away; AblationsError while it trains, and where another sweep cannot be read."""
    rows = run_rows(sweep)
    if is_still_going(sweep, rows):
        raise AblationsError(f"sweep '{sweep.name}' trains, or waits to; `platform cancel {sweep.name}` ends it first")
    of_others = _runs_of_others(sweep.home, sweep.name)
    own = {row.id for row in rows}
    going = tuple(sorted(run for run in own - of_others if sweep.run(run).path.exists()))
    folders = [sweep.folder, *(sweep.run(run).path for run in going)]
    return Deletion(
        sweep=sweep,
        runs=going,
        shared=len(own & of_others),
        num_bytes=sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()),
    )


def remove_sweep(deletion: Deletion) -> None:
    """Remove the sweep, then its runs: what an interruption leaves are runs without a sweep, never the reverse.

    AblationsError where a command has begun to work on it since.
    """
    sweep = deletion.sweep
    try:
        with FileLock(sweep.lock, timeout=0):
            # Beside the sweeps, so that what an interruption leaves of it is none.
            doomed = sweep.home.path / f".{sweep.name}.deleted"
            shutil.rmtree(doomed, ignore_errors=True)
            sweep.folder.rename(doomed)
    except Timeout:
        raise AblationsError(f"sweep '{sweep.name}': a command works on it; `platform cancel {sweep.name}`") from None
    shutil.rmtree(doomed)
    # A sweep that was started while the user was asked may have some of them too.
    for run in set(deletion.runs) - _runs_of_others(sweep.home, sweep.name):
        shutil.rmtree(sweep.run(run).path)


def _runs_of_others(home: Home, name: str) -> set[str]:
    return {run.id for other in home.sweep_names() if other != name for run in read_sweep(home, other).plan.runs}
