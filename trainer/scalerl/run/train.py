"""One run: from the resolved recipe in a run folder to its curve.

    warm start -> [schedule: decode, verify, optimiser step]* -> evaluation at every compute interval

The loop stops at the first optimiser step whose compute reaches the budget, so a run extended later and a run given
the larger budget at once are the same run.
"""

import math
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from scalerl.cluster.cluster import TrainedStep
from scalerl.run.assemble import assemble
from scalerl.run.checkpoint import checkpoint_exists, read_checkpoint, write_checkpoint
from scalerl.run.health import Health
from scalerl.run.metrics import MetricsLog, read_rows
from scalerl.run.old_checkpoint import read_old_checkpoint
from scalerl.run.run_folder import RunFolder, remove_leftovers, replace_folder
from scalerl.run.status import StatusFile
from scalerl.schedules import SCHEDULES

LOCK_LIMIT_S = 2.0
"""Whoever only asks whether a run is alive holds its lock for an instant."""


class Busy(RuntimeError):
    """Another process is training this run."""


class Cancelled(RuntimeError):
    """The run was asked to stop; its checkpoint is written."""


def train(path: Path, *, budget_gpu_hours: float, warm_starts: Path, code_version: str = "unknown") -> None:
    """Train the run in folder `path` until its compute reaches the budget, from its last checkpoint if it has one.

    Raises Busy when another process holds the run, Cancelled after SIGTERM or Ctrl-C, learner.Diverged when the loss
    stays not finite. Whatever is raised, status.json says why, and a later call goes on from the last checkpoint.
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

    def close(self) -> None:
        """Close the log and end what runs beside this process."""
        self.metrics.close()
        self.cluster.close()

    def advance(self, budget_gpu_hours: float) -> None:
        """Optimiser steps, evaluations and checkpoints until the budget is reached; then the model is written."""
        schedule = SCHEDULES[self.recipe.off_policy.type]
        every = self.recipe.evaluation.every * self.recipe.compute_unit_gpu_hours
        saved = time.monotonic()
        self._stop_if_asked()
        if self.evaluations == 0:
            self._evaluate()
        if self.cluster.compute_gpu_hours < budget_gpu_hours:
            self.cluster.start()
        while self.cluster.compute_gpu_hours < budget_gpu_hours:
            self._log(schedule(self.cluster))
            if self.cluster.compute_gpu_hours >= self.evaluations * every:
                self._evaluate()
                # A long step may pass several points of the grid; rounding must not repeat one.
                self.evaluations = max(self.evaluations, math.floor(self.cluster.compute_gpu_hours / every) + 1)
            self._stop_if_asked()
            if time.monotonic() - saved >= self.recipe.checkpoint_every_s:
                self.save()
                saved = time.monotonic()
        self.save()
        with replace_folder(self.folder.model) as folder:
            self.cluster.learner.save_model(folder)
            # Those of the start serve: `transformers` takes seconds to import only to write them again. A policy that
            # writes a config.json with its weights says their precision in it.
            for path in self.parts.start.iterdir():
                is_small = path.suffix in (".json", ".jinja", ".model", ".txt") and not path.name.endswith(
                    ".index.json"
                )
                if is_small and not (path.name == "config.json" and (folder / path.name).exists()):
                    shutil.copyfile(path, folder / path.name)
        self.status.write("done")

    def _stop_if_asked(self) -> None:
        if self.stop_asked.is_set():
            self.save()
            raise Cancelled("asked to stop")

    def _progress(self) -> dict[str, Any]:
        clock = self.cluster.clock
        return {
            "step": self.cluster.learner.version,
            "compute_gpu_hours": self.cluster.compute_gpu_hours,
            "flops": clock.flops,
            "tokens": clock.tokens,
        }

    def _evaluate(self) -> None:
        version, progress = self.cluster.learner.version, self._progress()
        with self.cluster.paused():
            rows = list(self.parts.held_out.measure(self.cluster, self.evaluations))
            downstream = list(self.parts.downstream.measure(self.cluster, self.num_readings))
        self.evaluations += 1
        for kind, measured in (("eval", rows), ("downstream", downstream)):
            for row in measured:
                self.metrics.write({"kind": kind, **progress, "weight_version": version, **row, "wall_s": self._wall()})
        self.num_readings += 1
        compute, rate = progress["compute_gpu_hours"], rows[-1]["pass_rate"]
        self.status.beat(every=0.0, step=version, compute_gpu_hours=compute, wall_s=self._wall(), pass_rate=rate)
        print(f"step {version:6d}  {compute:.4f} {self.recipe.cluster.compute_name}  pass rate {rate:.4f}", flush=True)

    def _log(self, step: TrainedStep) -> None:
        generator_idle, trainer_idle = self.cluster.idle_shares()
        row = {
            "kind": "train",
            **self._progress(),
            **step.update.metrics,
            **group_metrics(step),
            "outcomes": self.cluster.judge.take_counts(),
            "retired": len(self.cluster.pool.retired),
            "epoch": self.cluster.pool.epoch,
            "generator_idle": generator_idle,
            "trainer_idle": trainer_idle,
            "wall_s": self._wall(),
        }
        self.metrics.write(row)
        self.health.add(row)
        for text in self.health.unsaid():
            print(f"step {row['step']:6d}  warning: {text}", flush=True)
        self.status.beat(
            step=row["step"],
            compute_gpu_hours=row["compute_gpu_hours"],
            wall_s=row["wall_s"],
            warnings=list(self.health.warnings().values()),
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


def group_metrics(step: TrainedStep) -> dict[str, Any]:
    """Columns of a train row that come from the groups trained on."""
    rollouts = [rollout for group in step.groups for rollout in group.rollouts]
    rewards = [reward for group in step.groups for reward in group.rewards]
    versions = np.concatenate([rollout.versions for rollout in rollouts])
    staleness = Counter((step.version - versions).tolist())
    return {
        "reward_mean": sum(rewards) / len(rewards),
        "pass_rate": sum(group.pass_rate for group in step.groups) / len(step.groups),
        "zero_variance": sum(group.zero_variance for group in step.groups) / len(step.groups),
        "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
        "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
        "mean_tokens": len(versions) / len(rollouts),
        "staleness": {str(lag): count for lag, count in sorted(staleness.items())},
    }
