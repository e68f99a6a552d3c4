"""The training loop of one run, from the resolved recipe in a run folder to its curve.

    warm start -> [schedule: decode, verify, optimiser step]* -> evaluation at every compute interval

The loop stops at the first optimiser step whose compute reaches the budget, so a run extended later and a run given
the larger budget at once are the same run.
"""

import json
import math
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch

from scalerl.cluster.cluster import TrainedStep
from scalerl.errors import Cancelled
from scalerl.evaluation.measured_rows import MeasuredRows
from scalerl.learner.learner import Learner
from scalerl.model.device import deterministic_on_cpu, device_of, device_text
from scalerl.processes.coordinator import Coordinator
from scalerl.processes.process_cluster import WallCluster
from scalerl.prompts.pool import AllRetired
from scalerl.rollout import Group
from scalerl.run.assemble import assemble
from scalerl.run.checkpoint import Manifest, SaveInterval, damaged, other_form, read_checkpoint, write_checkpoint
from scalerl.run.health import Health
from scalerl.run.pending import MOST_PENDING, Due
from scalerl.run.rollout_rows import trained_rollouts
from scalerl.run.run_folder import RunFolder, replace_folder, write_atomically
from scalerl.run.run_log import EMPTY_LOG, LogMark, MetricsLog, Progress, evaluation_row, read_rows
from scalerl.run.status_file import StatusFile
from scalerl.run.train_row import progress_of, train_row
from scalerl.run.warm_start import Listener
from scalerl.schedules import SCHEDULES

MOST_EVENTS = 5
"""Number of events kept in the status; the log has them all."""
SMALL_FILES = (".json", ".jinja", ".model", ".txt")
"""Suffixes of a model's configuration and tokenizer files."""


class Run(Listener):
    """The trainer's parts, built for one recipe and seed and restored to the last checkpoint."""

    def __init__(
        self,
        folder: RunFolder,
        warm_starts: Path,
        status: StatusFile,
        stop_asked: threading.Event,
        coordinator: Coordinator | None = None,
    ) -> None:
        self.folder, self.status, self.stop_asked = folder, status, stop_asked
        self.recipe, self.seed = folder.read_resolved()
        torch.set_num_threads(self.recipe.threads)
        self.device = device_of(self.recipe)
        deterministic_on_cpu(self.device)
        print(f"device: {device_text(self.device)}", flush=True)
        status.beat(threads=self.recipe.threads)
        self.evaluations = 0
        """Points of the compute grid already passed."""
        self.num_readings = 0
        """Evaluations taken; fewer than grid points if a long step passed several."""
        self.wall_s = 0.0
        self.started = time.monotonic()
        self.off_clock_s = {"start": 0.0, "evaluate": 0.0, "checkpoint": 0.0}
        """Seconds of work not charged as compute, over all attempts."""
        self.faults: tuple[str, ...] = ()
        """Damaged files of the run and their replacements; also a changed device."""
        self.events: deque[str] = deque(maxlen=MOST_EVENTS)
        """The latest events of the cluster's processes."""
        self.num_faults_said = 0
        """Faults of environments that this attempt has printed."""
        self.last: Manifest | None = None
        """The checkpoint that the run resumed from, or the last one written."""
        self.saved: tuple[LogMark, int] = EMPTY_LOG, 0
        """Mark of the log and tokens decoded, as of that checkpoint."""
        if status.damage:
            self.warn(status.damage)
        self.parts = assemble(
            self.recipe,
            self.seed,
            warm_starts,
            self,
            coordinator=coordinator,
            evaluations=folder.evaluations,
        )
        self.cluster, self.pending = self.parts.cluster, self.parts.pending
        self._write_left_out()
        self.last_batch: list[Group] = []
        """Batch of this attempt's last optimiser step; of the last attempt's, if its evaluation is still to come."""
        try:
            log, rollouts = self._restore()
            self.metrics, self.rollouts = MetricsLog(folder.metrics, log.bytes), self._open_rollouts(rollouts)
        except BaseException:
            self.cluster.close()
            raise
        self.health = Health()
        with suppress(ValueError):  # a damaged log costs its warnings, not the run; `platform compare` names the line
            for row in read_rows(folder.metrics):
                if row.get("kind") == "train":
                    self.health.add(row)
                elif row.get("kind") == "eval":
                    status.resume(pass_rate=row.get("pass_rate"))
        self.interval = SaveInterval(self.recipe.checkpoint_every_s)
        self.off_clock_s["start"] += time.monotonic() - self.started

    def close(self) -> None:
        """Close the log and stop everything that runs beside this process."""
        self._tell_news()
        self.metrics.close()
        self.rollouts.close()
        self.cluster.close()

    def advance(self, budget_gpu_hours: float) -> None:
        """Run steps, evaluations and checkpoints until the budget is spent or prompts run out; then write the model.

        Raises Cancelled, after a checkpoint, if the run is to stop: between decode steps, or before a step of the
        optimiser has changed anything.
        """
        self.cluster.check_stop = self.cluster.learner.check_stop = self._stop_if_asked
        try:
            exhausted = self._train(budget_gpu_hours)
        except Cancelled:
            self.save()
            raise
        self._say_health(ended=True)
        self.save()
        write_model(self.folder.model, self.cluster.learner, self.parts.start)
        if self.pending is not None:
            self.pending.clear()
        self.status.write("stopped" if exhausted else "done", exhausted)

    def _train(self, budget_gpu_hours: float) -> str:
        """Take steps until the budget is spent; returns why no prompt is left to train on, if that ends the run."""
        schedule = SCHEDULES[self.recipe.off_policy.type]
        self._stop_if_asked()
        self._evaluate_if_due()
        if self.cluster.compute_gpu_hours < budget_gpu_hours:
            with self._off_clock("start"):
                self.cluster.start()
        exhausted = ""
        while self.cluster.compute_gpu_hours < budget_gpu_hours:
            try:
                step = schedule(self.cluster)
            except AllRetired as reason:
                exhausted = str(reason)
                break
            self._log(step)
            self._write_measured()
            self._evaluate_if_due()
            self._stop_if_asked()
            if self.interval.is_due:
                self.save()
        if self.pending:
            with self.cluster.paused(), self._off_clock("evaluate"):
                self._until_pending(0)
            self._stop_if_asked()
        return exhausted

    def _stop_if_asked(self) -> None:
        if self.stop_asked.is_set():
            raise Cancelled("asked to stop")

    def _open_rollouts(self, mark: LogMark) -> MetricsLog:
        """Open the rollouts file and cut off rows after the checkpoint; a file that has changed is started again."""
        if fault := mark.fault(self.folder.rollouts):
            self.warn(f"{fault}. Sample rollouts of earlier steps are lost; nothing else is affected")
            mark = EMPTY_LOG
        return MetricsLog(self.folder.rollouts, mark.bytes)

    def _evaluate_if_due(self) -> None:
        """Evaluate if the step has reached the next point of the compute grid, and move on to the following point."""
        if self._evaluation_is_due:
            self._evaluate()
            # A long step may pass several grid points; rounding must not repeat one.
            self.evaluations = max(self.evaluations, math.floor(self.cluster.compute_gpu_hours / self._every) + 1)

    @property
    def _every(self) -> float:
        """Interval of evaluations in GPU-hours."""
        return self.recipe.evaluation.every * self.recipe.compute_unit_gpu_hours

    @property
    def _evaluation_is_due(self) -> bool:
        return self.cluster.compute_gpu_hours >= self.evaluations * self._every

    def _evaluate(self) -> None:
        """Evaluate the present weights off the clock, or have the evaluator do so while training continues."""
        progress, wall_s, cluster = progress_of(self.cluster), self._wall(), self.cluster
        trained = trained_rollouts(self.parts.reader, self.recipe, self.last_batch, self.num_readings, cluster.task)
        if self.pending is None:
            with cluster.paused(), self._off_clock("evaluate"):
                measured = self.parts.meter.measure(cluster, self.evaluations, self.num_readings)
            self._keep("trained", progress, trained)
            self._write_readings(progress, measured, self._wall())
        else:
            self._keep("trained", progress, trained)
            self._until_pending(MOST_PENDING - 1)
            self.pending.add(Due(index=self.evaluations, reading=self.num_readings, progress=progress, wall_s=wall_s))
        self.evaluations += 1
        self.num_readings += 1
        step, compute = progress.step, progress.compute_gpu_hours
        self.status.beat(every=0.0, step=step, compute_gpu_hours=compute, wall_s=self._wall())

    def _write_readings(self, progress: Progress, measured: MeasuredRows, wall_s: float) -> None:
        """Write the rows and sample rollouts of one evaluation, whose weights date from `progress` and `wall_s`."""
        for columns in measured.held_out:
            self.metrics.write(evaluation_row("eval", progress, columns, wall_s))
        for columns in measured.downstream:
            self.metrics.write(evaluation_row("downstream", progress, columns, wall_s))
        self._keep("held_out", progress, measured.rollouts)
        self.cluster.judge.note_faults(measured.faults)
        self._say_health()
        step, compute, rate = progress.step, progress.compute_gpu_hours, measured.held_out[-1]["pass_rate"]
        self.status.beat(every=0.0, pass_rate=rate)
        print(f"step {step:6d}  {compute:.4f} {self.recipe.cluster.compute_name}  pass rate {rate:.4f}", flush=True)

    def _keep(
        self, kind: Literal["trained", "held_out"], progress: Progress, rollouts: Iterable[Mapping[str, Any]]
    ) -> None:
        """Write these rollouts for people to read; `progress` is that of their evaluation."""
        place = {"kind": kind, "step": progress.step, "compute_gpu_hours": progress.compute_gpu_hours}
        for kept in rollouts:
            self.rollouts.write({**place, **kept})

    def _write_measured(self) -> None:
        """Write the rows of evaluations that the evaluator has finished since the last call."""
        if self.pending is not None:
            for due, measured in self.pending.take_measured():
                self._write_readings(due.progress, measured, due.wall_s)

    def _until_pending(self, most: int) -> None:
        """Wait until at most `most` evaluations are pending, or the run is to stop."""
        assert self.pending is not None
        assert isinstance(self.cluster, WallCluster)
        pending = self.pending

        def is_so() -> bool:
            self._write_measured()
            self._tell_news()
            is_over = len(pending) <= most or self.stop_asked.is_set()
            if not is_over:
                waiting = f"waiting for the evaluator: {len(pending)} evaluations are not measured yet"
                self.status.beat(message=waiting, units=self.cluster.units())
            return is_over

        self.cluster.await_evaluator(is_so)

    def _log(self, step: TrainedStep) -> None:
        """Write the row of a step and update the run's health warnings."""
        self.last_batch = step.groups
        row = train_row(self.cluster, step, self._wall(), self.off_clock_s)
        self.metrics.write(row)
        self.health.add(row)
        self.status.beat(
            step=row["step"],
            compute_gpu_hours=row["compute_gpu_hours"],
            wall_s=row["wall_s"],
            units=self.cluster.units(),
        )
        self._tell_news()
        self._say_health()

    def _tell_news(self) -> None:
        """Print events of the cluster's processes, and keep them for the status."""
        for text in self.cluster.news:
            print(f"step {progress_of(self.cluster).step:6d}  warning: {text}", flush=True)
        self.events.extend(self.cluster.news)
        self.cluster.news.clear()

    def _say_health(self, *, ended: bool = False) -> None:
        """Print each warning once, and keep the lasting ones in the status."""
        faults = list(self.cluster.judge.faults.values())
        for text in (*faults[self.num_faults_said :], *self.health.unsaid(ended=ended)):
            print(f"step {progress_of(self.cluster).step:6d}  warning: {text}", flush=True)
        lasting = self.health.warnings(ended=ended).values()
        self.num_faults_said = len(faults)
        self.status.beat(warnings=(*self.faults, *self.events, *faults, *lasting))

    @contextmanager
    def _off_clock(self, work: str) -> Iterator[None]:
        """Count the time in the block as work not charged as compute."""
        began = time.monotonic()
        yield
        self.off_clock_s[work] += time.monotonic() - began

    def _wall(self) -> float:
        return round(self.wall_s + time.monotonic() - self.started, 3)

    def save(self) -> None:
        """Write a checkpoint. Rows up to here are flushed to disk first, so the checkpoint never points past their end.

        If nothing has happened since the last checkpoint, none is written: an equal one would displace the previous
        one.
        """
        with self.interval.saving(), self.cluster.paused(), self._off_clock("checkpoint"):
            log, rollouts = self.metrics.sync(), self.rollouts.sync()
            moment = log, self.cluster.clock.tokens
            if self.last is None or self.saved != moment:
                state = {
                    "cluster": self.cluster.state_dict(),
                    "evaluations": self.evaluations,
                    "num_readings": self.num_readings,
                    "wall_s": self._wall(),
                    "off_clock_s": dict(self.off_clock_s),
                    "start_sha256": self.parts.start_sha256,
                    "device": self.device.type,
                    "rollouts": asdict(rollouts),
                    "last_batch": self.last_batch if self._evaluation_is_due else [],
                }
                if self.pending is not None:
                    state["pending_evaluations"] = self.pending.state_dict()
                write_kept = self.cluster.learner.write_kept
                self.last = write_checkpoint(self.folder.checkpoint, state, log, self.last, write_kept)
                self.saved = moment
                if self.pending is not None:
                    self.pending.saved()

    def _restore(self) -> tuple[LogMark, LogMark]:
        """Restore the newest whole checkpoint; return its marks of the run log and of the rollouts file."""
        versions = self.status.earlier_versions
        found = read_checkpoint(self.folder.checkpoint, self.folder.metrics, self.cluster.task.train, versions)
        if found is None:
            if self.folder.old_checkpoint.exists():
                raise other_form(self.folder.old_checkpoint, 0, versions)
            if self.pending is not None:
                self.pending.load_state_dict([])
            return EMPTY_LOG, EMPTY_LOG
        state, self.last = found.state, found.manifest
        for fault in found.faults:
            self.warn(f"{fault}. Resumed from the previous checkpoint")
        if state["start_sha256"] != self.parts.start_sha256:
            raise damaged(
                [f"{self.parts.start} is not the model that the run started from: its content has changed"],
                self.folder.checkpoint,
            )
        if found.kept:
            state["cluster"]["learner"]["kept"] = [str(path) for path in found.kept]
        self.cluster.load_state_dict(state["cluster"])
        self.saved = found.manifest.log, self.cluster.clock.tokens
        before = state["device"]
        if before != self.device.type:
            self.warn(
                f"the run resumes on {self.device.type}, but was trained on {before} so far. From here on, its numbers "
                f"differ by rounding from those of a run on one device"
            )
        self.evaluations, self.num_readings = state["evaluations"], state["num_readings"]
        self.wall_s = state["wall_s"]
        progress = progress_of(self.cluster)
        self.status.resume(step=progress.step, compute_gpu_hours=progress.compute_gpu_hours, wall_s=self.wall_s)
        self.off_clock_s = state["off_clock_s"]
        self.last_batch = state["last_batch"]
        if self.pending is not None:
            self.pending.load_state_dict(state["pending_evaluations"])
        return found.manifest.log, LogMark(**state["rollouts"])

    def _write_left_out(self) -> None:
        """Write the list of unused task-file rows, one per line."""
        rows = self.parts.tasks.left_out.items()
        lines = [json.dumps({"task": name, **asdict(row)}) for name, several in rows for row in several]
        if lines:
            write_atomically(self.folder.left_out, "".join(f"{line}\n" for line in lines).encode())

    def at_step(self, step: int, text: str) -> None:
        self.status.beat(warm_start_step=step, message=text)
        self._stop_if_asked()

    def warn(self, fault: str) -> None:
        """Report a fault, such as a damaged file, here and in the status of this attempt."""
        print(f"warning: {fault}", flush=True)
        self.faults += (fault,)
        self.status.beat(every=0.0, warnings=self.faults)


def write_model(folder: Path, learner: Learner, start: Path) -> None:
    """Replace `folder` by the learner's policy, with the configuration and tokenizer of the model it started from.

    Both are copied: importing `transformers` only to rewrite them would take seconds. If the learner writes a
    config.json with its weights, that file is kept, because it records their precision.
    """
    with replace_folder(folder) as partial:
        learner.save_model(partial)
        for path in start.iterdir():
            is_index = path.name.endswith(".index.json")
            is_written = path.name == "config.json" and (partial / path.name).exists()
            if path.suffix in SMALL_FILES and not is_index and not is_written:
                shutil.copyfile(path, partial / path.name)
