"""One run: from the resolved recipe in a run folder to its curve.

    warm start -> [schedule: decode, verify, optimiser step]* -> evaluation at every compute interval

The loop stops at the first optimiser step whose compute reaches the budget, so a run extended later and a run given
the larger budget at once are the same run.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from scalerl.cluster.cluster import TrainedStep
from scalerl.run.assemble import assemble
from scalerl.run.checkpoint import checkpoint_exists, read_checkpoint, write_checkpoint
from scalerl.run.errors import Busy, Cancelled
from scalerl.run.health import Health
from scalerl.run.metrics import DownstreamRow, EvalRow, MetricsLog, read_rows
from scalerl.run.model_folder import write_model
from scalerl.run.old_checkpoint import read_old_checkpoint
from scalerl.run.run_folder import RunFolder, remove_leftovers
from scalerl.run.status_file import StatusFile
from scalerl.run.train_row import progress_of, train_row
from scalerl.schedules import SCHEDULES

LOCK_LIMIT_S = 2.0
"""Whoever only asks whether a run is alive holds its lock for an instant."""


def train(path: Path, *, budget_gpu_hours: float, warm_starts: Path, code_version: str = "unknown") -> None:
    """Train the run in folder `path` until its compute reaches the budget, from its last checkpoint if it has one.

    Raises Busy when another process holds the run, Cancelled after SIGTERM or Ctrl-C, CannotResume when its files are
    damaged, learner.Diverged when the loss stays not finite. Whatever is raised, status.json says why, and a later call
    resumes from the last checkpoint.
    """
    folder = RunFolder(path)
    try:
        with FileLock(folder.lock, timeout=LOCK_LIMIT_S), stop_on_signals() as stop_asked:
            remove_leftovers(folder.path)
            status = StatusFile(folder, budget_gpu_hours, code_version)
            try:
                recipe, _ = folder.read_recipe()
                recipe.check_budget(budget_gpu_hours / recipe.compute_unit_gpu_hours)
                with closing(Run(folder, warm_starts, status, stop_asked)) as run:
                    run.advance(budget_gpu_hours)
            except Cancelled:
                status.write("cancelled", "asked to stop")
                raise
            except BaseException as error:
                with suppress(OSError):
                    status.write("failed", f"{type(error).__name__}: {error}")
                raise
    except Timeout:
        raise Busy(f"{path}: another process is training this run") from None


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set while the block runs; the handlers of before are put back after it.

    Where Ctrl-C is ignored, as in the jobs of a sweep, it stays so.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    caught = [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in caught}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


class Run:
    """The trainer's parts, put together for one recipe and seed and brought to where the last checkpoint was."""

    def __init__(self, folder: RunFolder, warm_starts: Path, status: StatusFile, stop_asked: threading.Event) -> None:
        self.folder, self.status, self.stop_asked = folder, status, stop_asked
        self.recipe, self.seed = folder.read_recipe()
        torch.set_num_threads(self.recipe.threads)
        torch.use_deterministic_algorithms(True)
        status.beat(threads=self.recipe.threads)
        self.evaluations = 0
        """Points of the grid of compute that are behind."""
        self.num_readings = 0
        """Evaluations taken: fewer, where a long step passed several points."""
        self.wall_s = 0.0
        self.started = time.monotonic()
        self.parts = assemble(self.recipe, self.seed, warm_starts)
        self.cluster = self.parts.cluster
        try:
            self.metrics = MetricsLog(folder.metrics, self._restore())
        except BaseException:
            self.cluster.close()
            raise
        self.health = Health()
        with suppress(ValueError):  # a damaged log costs its warnings, not the run; `platform compare` names the line
            for row in read_rows(folder.metrics, kind="train"):
                self.health.add(row)
        self.saved = time.monotonic()

    def close(self) -> None:
        """Close the log and end what runs beside this process."""
        self.metrics.close()
        self.cluster.close()

    def advance(self, budget_gpu_hours: float) -> None:
        """Optimiser steps, evaluations and checkpoints until the budget is reached; then the model is written."""
        schedule = SCHEDULES[self.recipe.off_policy.type]
        self._stop_if_asked()
        if self.evaluations == 0:
            self._evaluate()
        if self.cluster.compute_gpu_hours < budget_gpu_hours:
            self.cluster.start()
        while self.cluster.compute_gpu_hours < budget_gpu_hours:
            self._log(schedule(self.cluster))
            self._evaluate_if_due()
            self._stop_if_asked()
            if time.monotonic() - self.saved >= self.recipe.checkpoint_every_s:
                self.save()
        self.save()
        write_model(self.folder.model, self.cluster.learner, self.parts.start)
        self.status.write("done")

    def _stop_if_asked(self) -> None:
        if self.stop_asked.is_set():
            self.save()
            raise Cancelled("asked to stop")

    def _evaluate_if_due(self) -> None:
        """Measure if the step has reached the next point of the grid of compute, and move to the point after it."""
        every = self.recipe.evaluation.every * self.recipe.compute_unit_gpu_hours
        compute = self.cluster.compute_gpu_hours
        if compute >= self.evaluations * every:
            self._evaluate()
            # A long step may pass several points of the grid; rounding must not repeat one.
            self.evaluations = max(self.evaluations, math.floor(compute / every) + 1)

    def _evaluate(self) -> None:
        """Measure the present weights, off the clock."""
        progress, cluster = progress_of(self.cluster), self.cluster
        with cluster.paused():
            held_out = list(self.parts.held_out.measure(cluster, self.evaluations))
            downstream = list(self.parts.downstream.measure(cluster, self.num_readings))
        self.evaluations += 1
        self.num_readings += 1
        for kind, measured in ((EvalRow, held_out), (DownstreamRow, downstream)):
            for one in measured:
                self.metrics.write(
                    kind(progress=progress, weight_version=progress.step, measured=one, wall_s=self._wall())
                )
        step, compute, rate = progress.step, progress.compute_gpu_hours, held_out[-1]["pass_rate"]
        self.status.beat(every=0.0, step=step, compute_gpu_hours=compute, wall_s=self._wall(), pass_rate=rate)
        print(f"step {step:6d}  {compute:.4f} {self.recipe.cluster.compute_name}  pass rate {rate:.4f}", flush=True)

    def _log(self, step: TrainedStep) -> None:
        """Write the row of a step, and what it says of the run's health."""
        row = train_row(self.cluster, step, self._wall())
        self.metrics.write(row)
        self.health.add(row.to_json())
        for text in self.health.unsaid():
            print(f"step {row.progress.step:6d}  warning: {text}", flush=True)
        self.status.beat(
            step=row.progress.step,
            compute_gpu_hours=row.progress.compute_gpu_hours,
            wall_s=row.wall_s,
            warnings=tuple(self.health.warnings().values()),
        )

    def _wall(self) -> float:
        return round(self.wall_s + time.monotonic() - self.started, 3)

    def save(self) -> None:
        """Replace the checkpoint; metrics up to here are made durable first, so it never points past their end."""
        with self.cluster.paused():
            state = {
                "cluster": self.cluster.state_dict(),
                "evaluations": self.evaluations,
                "num_readings": self.num_readings,
                "metrics_length": self.metrics.sync(),
                "wall_s": self._wall(),
            }
            write_checkpoint(self.folder.checkpoint, state)
            self.folder.old_checkpoint.unlink(missing_ok=True)
        self.saved = time.monotonic()

    def _restore(self) -> int:
        """Bring everything to where the last checkpoint was; returns the length of the run log then."""
        if checkpoint_exists(self.folder.checkpoint):
            state = read_checkpoint(self.folder.checkpoint, self.cluster.task.train)
        elif self.folder.old_checkpoint.exists():
            state = read_old_checkpoint(self.folder.old_checkpoint, self.recipe)
        else:
            return 0
        self.cluster.load_state_dict(state["cluster"])
        self.evaluations, self.num_readings = state["evaluations"], state["num_readings"]
        self.wall_s = state["wall_s"]
        return state["metrics_length"]
