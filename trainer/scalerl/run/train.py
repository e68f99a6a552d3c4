"""One attempt at a run: holds the folder's lock, stops on signals, and records any outcome in status.json."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from scalerl.cluster.placement import NodeOfRun
from scalerl.durable import error_text
from scalerl.errors import Busy, Cancelled, Rejected, ScaleRLError
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import CommandRecipe
from scalerl.run.program import OwnLogReader, no_reader, run_program
from scalerl.run.run_folder import RunFolder, remove_leftovers
from scalerl.run.status_file import StatusFile

if TYPE_CHECKING:
    from scalerl.processes.coordinator import Coordinator

LOCK_LIMIT_S = 2.0
"""Time to wait for the lock, since a process that only checks whether the run is alive holds it for an instant."""


def train(
    path: Path,
    *,
    budget_gpu_hours: float,
    warm_starts: Path,
    code_version: str = "unknown",
    place: NodeOfRun | None = None,
    read_log: OwnLogReader = no_reader,
) -> None:
    """Train the run in folder `path` up to its budget, from its last checkpoint if it has one. A user's own program is
    started with its command; everything else of the attempt is the same.

    If `place` is given, this node is the first of several; agents of the others (`scalerl.processes.agent`) start
    processes there. `read_log` reads the logs of programs that have a form of their own.

    Raises the errors of `scalerl.errors`; Busy if another process holds the run. After any error, status.json gives the
    reason, and a later call resumes from the last checkpoint.
    """
    folder = RunFolder(path)
    try:
        with FileLock(folder.lock, timeout=LOCK_LIMIT_S), stop_on_signals() as stop_asked:
            remove_leftovers(folder.path)
            status = StatusFile(folder, budget_gpu_hours, code_version)
            try:
                recipe, seed = folder.read_recipe()
                recipe.check_budget(budget_gpu_hours / recipe.compute_unit_gpu_hours)
                if isinstance(recipe, CommandRecipe):
                    run_program(
                        folder,
                        recipe,
                        seed,
                        budget=budget_gpu_hours,
                        status=status,
                        stop_asked=stop_asked,
                        read_log=read_log,
                    )
                else:
                    nodes = coordinator_of(recipe, path, place, status.attempt)
                    train_policy(folder, budget_gpu_hours, warm_starts, status, stop_asked, nodes)
            except Cancelled:
                status.write("cancelled", "asked to stop")
                raise
            except BaseException as error:
                status.write("failed", str(error) if isinstance(error, ScaleRLError) else error_text(error))
                raise
    except Timeout:
        raise Busy(f"{path}: another process is training this run; wait for it, or stop it") from None


def train_policy(
    folder: RunFolder,
    budget_gpu_hours: float,
    warm_starts: Path,
    status: StatusFile,
    stop_asked: threading.Event,
    nodes: "AbstractContextManager[Coordinator | None]",
) -> None:
    """Train the policy of a recipe of ours; Rejected if a model, a tokenizer or the placement does not fit."""
    from scalerl.run.loop import Run  # torch takes seconds to load, and a program needs none of it

    with nodes as others:
        try:
            run = Run(folder, warm_starts, status, stop_asked, others)
        except Rejected:
            raise
        except ValueError as error:
            raise Rejected(str(error)) from error
        with closing(run), libraries_uncollected():
            run.advance(budget_gpu_hours)


def coordinator_of(
    recipe: ResolvedRecipe, path: Path, place: NodeOfRun | None, attempt: int
) -> "AbstractContextManager[Coordinator | None]":
    """The coordinator that agents of other nodes connect to; None if there is only one node.

    Rejected if the run cannot use several.
    """
    if place is None or place.nodes == 1:
        return nullcontext()
    if recipe.cluster.type != "wall":
        raise Rejected(
            f"{path}: a virtual cluster runs in one process, but the job has {place.nodes} nodes; request one node"
        )
    from scalerl.processes.coordinator import Coordinator

    return closing(Coordinator(path, place, attempt=attempt))


@contextmanager
def libraries_uncollected() -> Iterator[None]:
    """Leave what exists out of garbage collections during the block: looking at torch's 200,000 objects takes .13 s."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event set by SIGTERM, Ctrl-C and the end of a terminal during the block; the previous handlers are
    restored afterwards.

    A signal that is ignored, as Ctrl-C in the jobs of a sweep, stays ignored.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    caught = [
        number
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in caught}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
