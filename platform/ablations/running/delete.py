"""Removes a sweep from its home folder, with the runs that no other sweep uses."""

import shutil
from dataclasses import dataclass

from filelock import FileLock, Timeout

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.running.ending import refuse_while_going
from ablations.running.leftovers import remove_temporary


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """A planned deletion: `Deletion(sweep=loo, runs=("81d2f0a95c3b",), shared=2, num_bytes=48211)`."""

    sweep: StartedSweep
    runs: tuple[str, ...]
    """Runs that no other sweep uses, if they have started."""
    shared: int
    """Number of runs that other sweeps use too; these are kept."""
    num_bytes: int
    """Size of the runs and of the sweep's own folder."""


def what_goes(sweep: StartedSweep) -> Deletion:
    """The deletion of a sweep, to confirm; AblationsError if the sweep is training or another one cannot be read."""
    refuse_while_going(sweep)
    of_others = _runs_of_others(sweep.home, sweep.name)
    own = {run.id for run in sweep.plan.runs}
    going = tuple(sorted(run for run in own - of_others if sweep.run(run).path.exists()))
    folders = [sweep.folder, *(sweep.run(run).path for run in going)]
    return Deletion(
        sweep=sweep,
        runs=going,
        shared=len(own & of_others),
        num_bytes=sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()),
    )


def remove_sweep(deletion: Deletion) -> None:
    """Remove the sweep, then its runs, so that an interruption leaves runs without a sweep, never the reverse.

    Raises AblationsError if a command has started to work on the sweep in the meantime.
    """
    sweep = deletion.sweep
    remove_temporary(sweep.home.path)
    try:
        with FileLock(sweep.lock, timeout=0):
            # Beside the sweeps folder, so that a leftover of an interruption is not taken for a sweep.
            doomed = sweep.home.path / f".{sweep.name}.deleted"
            shutil.rmtree(doomed, ignore_errors=True)
            sweep.folder.rename(doomed)
    except Timeout:
        raise AblationsError(
            f"sweep '{sweep.name}': another command is using it; run "
            f"`platform cancel {sweep.name}{sweep.home.end_of_command}` first"
        ) from None
    shutil.rmtree(doomed)
    # A sweep started while the user was being asked may use some of the runs too.
    for run in set(deletion.runs) - _runs_of_others(sweep.home, sweep.name):
        shutil.rmtree(sweep.run(run).path)


def _runs_of_others(home: Home, name: str) -> set[str]:
    return {run.id for other in home.sweep_names() if other != name for run in read_sweep(home, other).plan.runs}
