"""The probe as a Slurm job: submitted, followed, signalled, and always removed afterwards.

Ctrl-C and `kill` of the doctor cancel the job by its name. After `kill -9` nobody can cancel it: Slurm then removes a
waiting job at its deadline, a running one ends by itself after some minutes, and the next doctor removes the folder.
"""

import json
import os
import shlex
import shutil
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.pools.code_snapshot import take_snapshot
from ablations.pools.job import THREAD_VARIABLES
from ablations.signals import TO_STOP, interrupts_wait
from ablations.slurm import commands
from ablations.slurm.commands import Job, Partition
from ablations.slurm.doctor.cluster import up_and_away
from scalerl.checks.finding import Finding

SETTLE_S = 5.0
"""Seconds that a file may take to appear here from a node."""
SIGNAL_LIMIT_S = 15.0
LOOK_AT_PROBE_EVERY_S = 0.2
ASK_SLURM_EVERY_S = 1.0
"""Seconds between two queries to Slurm; affordable for one job that lasts a minute or two."""
YOUNG_S = 60.0
NUM_JOB_LOG_LINES = 8
NOT_STARTED = frozenset({"PENDING", "CONFIGURING"})
"""Slurm's states of a job without a node, or with a node that is still waking up."""


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """A probe's program and its resources; by default it only examines a node."""

    program: tuple[str, ...] = ()
    """Python arguments before the probe's folder; empty for `examine_node.py` as a file, which needs no `ablations`."""
    cpus: int = 1
    memory_mb: int = 2048
    gpus: int = 1
    """GPUs to request if the partition has any."""
    time_min: float = 10.0
    """Time limit; torch may take minutes to load from a cold shared folder."""
    report_limit_s: float = 240.0
    doing: str = "examines"


@dataclass(frozen=True, kw_only=True)
class Probing:
    """What all probes of an examination share."""

    home: Home
    setup: tuple[str, ...] = ()
    """Shell lines before the probe."""
    options: tuple[str, ...] = ()
    """Options of sbatch: `--account=physics`."""
    wait_s: float
    """Seconds that a probe may wait for a node."""
    say: Callable[[str], None]
    """Gets a line about each slow step."""


class Probe:
    """One job in one partition, as a context manager that removes it on exit."""

    def __init__(self, probing: Probing, partition: Partition, shape: JobShape | None = None) -> None:
        self.probing, self.partition, self.shape = probing, partition, shape or JobShape()
        self.name = f"doctor.{uuid.uuid4().hex[:8]}"
        self.folder = probing.home.path / "doctor" / self.name
        self.word = uuid.uuid4().hex
        self.lock = FileLock(self.folder / "here.lock")
        self.job = ""
        self.seen: Job | None = None
        """Slurm's last answer about the job."""
        self.started = 0.0

    def submit(self, **question: Any) -> str:
        """Write the question and submit the job; returns Slurm's words if it rejects the job, else an empty text."""
        self.snapshot = take_snapshot(Home(self.folder))
        (self.folder / "question.json").write_text(json.dumps({"word": self.word, **question}))
        script = self.folder / "job.sh"
        script.write_text("\n".join([*self._script(), ""]))
        try:
            with interrupts_wait(*TO_STOP):  # or sbatch might be killed between submitting and printing the job's id
                self.job = commands.submit(script, *self._options())
        except commands.SlurmSilent:
            raise
        except commands.SlurmError as error:
            return str(error)
        return ""

    def __enter__(self) -> "Probe":
        self.folder.mkdir(parents=True)
        self.lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        with interrupts_wait(*TO_STOP):
            try:
                commands.cancel_named(self.name)
            except commands.SlurmError as error:
                ends = f"Slurm ends the probe job within minutes; to cancel it, run `scancel --name={self.name}`"
                raise type(error)(f"{error}; {ends}") from error
            finally:
                self.lock.release()
                remove(self.folder)

    def report(self) -> dict[str, Any] | None:
        """The report of the node; None if the job still waits, ended without a report, or takes too long."""
        asked = running = ended = 0.0
        began = time.monotonic()
        while "report.json" not in self._names():
            now = time.monotonic()
            if now - asked >= ASK_SLURM_EVERY_S:
                asked, self.seen = now, self.ask()
                running = running or (now if self.seen and self.seen.state == "RUNNING" else 0.0)
                ended = ended or (now if self.has_ended else 0.0)
                said = f"job {self.job} {self.shape.doing} a node of {self.partition.name}"
                if self.seen and self.seen.state in NOT_STARTED:
                    said = f"job {self.job} waits in {self.partition.name} for {now - began:.0f} s: {self.seen.reason}"
                self.probing.say(said)
            if (ended and now - ended > SETTLE_S) or (running and now - running > self.shape.report_limit_s):
                return None
            if not running and not ended and now - began > self.probing.wait_s:
                return None
            time.sleep(LOOK_AT_PROBE_EVERY_S)
        self.started = (running or time.monotonic()) - began
        return json.loads((self.folder / "report.json").read_text())

    def ask(self) -> Job | None:
        """The job as Slurm knows it; None once Slurm has forgotten it."""
        return next(iter(commands.queue(self.name)), None)

    @property
    def has_ended(self) -> bool:
        """True if Slurm last reported the job as ended or unknown."""
        return self.seen is None or self.seen.has_ended

    def signals(self) -> list[dict[str, Any]]:
        if "signals.jsonl" not in self._names():
            return []
        found = []
        for line in (self.folder / "signals.jsonl").read_text().splitlines():
            with suppress(ValueError):  # the last line may not be whole yet
                found.append(json.loads(line))
        return found

    def wait_for_signal(self, name: str) -> float | None:
        """Time when the node got the signal, by its own clock in seconds since 1970; None if it did not."""
        deadline = time.monotonic() + SIGNAL_LIMIT_S
        while time.monotonic() < deadline:
            if came := [line["time"] for line in self.signals() if line.get("signal") == name]:
                return came[0]
            time.sleep(LOOK_AT_PROBE_EVERY_S)
        return None

    def wait_for_end(self, limit_s: float) -> float:
        """Wait until Slurm has ended the job; returns the seconds that the process lived after SIGTERM."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            self.seen = self.ask()
            if self.has_ended:
                break
            time.sleep(ASK_SLURM_EVERY_S)
        return max((line["alive_s"] for line in self.signals() if "alive_s" in line), default=0.0)

    def log(self) -> tuple[str, ...]:
        """The last lines printed by the job; empty if its log is not visible here."""
        if "job.log" not in self._names():
            return ()
        return tuple(tail(self.folder / "job.log", NUM_JOB_LOG_LINES))

    def _names(self) -> set[str]:
        # A listing asks the file server; NFS may answer whether one file exists from its cache for a minute.
        return set(os.listdir(self.folder))

    def _script(self) -> list[str]:
        """A batch script like submitit's for runs (`pool`)."""
        looking = str(self.snapshot / "ablations" / "slurm" / "doctor" / "examine_node.py")
        command = [sys.executable, "-u", *(self.shape.program or (looking,)), str(self.folder)]
        return [
            "#!/bin/bash",
            f"export {' '.join(f'{name}=1' for name in THREAD_VARIABLES)}",
            f"export PYTHONPATH={shlex.quote(str(self.snapshot))}",
            *self.probing.setup,
            f"srun --unbuffered {shlex.join(command)}",
        ]

    def _options(self) -> list[str]:
        shape = self.shape
        time_min = max(1, round(min(shape.time_min, self.partition.time_limit_min)))
        log = self.folder / "job.log"
        found = [f"--job-name={self.name}", f"--partition={self.partition.name}", "--nodes=1", "--ntasks=1"]
        found += [f"--cpus-per-task={shape.cpus}", f"--mem={shape.memory_mb}M", f"--time={time_min}"]
        found += ["--no-requeue", f"--output={log}"]
        found += [f"--deadline=now+{round(self.probing.wait_s + 60 * (time_min + 1))}seconds"]
        found += [f"--gpus-per-node={shape.gpus}"] if self.partition.gpus and shape.gpus else []
        return [*found, *self.probing.options]  # the last of two equal options counts


def remove(folder: Path) -> None:
    """Delete the folder of a probe, and its parent if then empty; the node may still be writing."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(LOOK_AT_PROBE_EVERY_S)
    with suppress(OSError):
        folder.parent.rmdir()


def remove_left_probes(home: Home) -> None:
    """Cancel and delete the probes of killed doctors, recognised by a lock that nobody holds."""
    for folder in (home.path / "doctor").glob("doctor.*"):
        if time.time() - folder.stat().st_mtime < YOUNG_S:
            continue  # its doctor may not hold the lock yet
        with suppress(Timeout), FileLock(folder / "here.lock", timeout=0):
            commands.cancel_named(folder.name)
            remove(folder)


BUSY = ("Resources", "Priority", "None", "BeginTime")
"""Reasons for waiting on a healthy cluster."""
SHARED = "jobs and this machine must share the home folder; choose one on the shared file system with --home"


def no_report(part: str, probe: Probe) -> Finding:
    """The finding for a probe without a report."""
    if probe.seen and probe.seen.state in NOT_STARTED:
        return waits_in_vain(part, probe)
    log, how = probe.log(), probe.seen.state if probe.seen else "gone from the queue"
    if not log:
        found = f"job {probe.job} is {how} and left no log here: the node does not see {probe.folder.parent.parent}"
        return Finding(part=part, check="home folder", level="error", found=found, remedy=SHARED)
    found = f"{sys.executable} sent no report; job {probe.job} is {how}, and its last lines are below"
    remedy = (
        "nodes must find this Python, its packages and srun under the same paths as here; install them on the shared "
        "file system, and check what the setup lines change (PATH, PYTHONPATH, module load)"
    )
    return Finding(part=part, check="Python", level="error", found=found, remedy=remedy, log=log)


def waits_in_vain(part: str, probe: Probe) -> Finding:
    """The finding for a probe that did not start: a warning on a busy cluster, an error if there are no nodes."""
    assert probe.seen is not None
    name, reason, wait_s = probe.partition.name, probe.seen.reason, probe.probing.wait_s
    found = f"job {probe.job} still waits after {wait_s:g} s; Slurm's reason: {reason}"
    if probe.seen.state != "PENDING":
        found = f"job {probe.job} is still {probe.seen.state} after {wait_s:g} s"
    up, away = up_and_away(name, commands.nodes())
    if up == 0:
        why = f" ({'; '.join(dict.fromkeys(group.reason for group in away if group.reason))})" if away else ""
        found += f"; no node of {name} accepts jobs{why}"
        remedy = "use another --partition, or wait until nodes return; for the reasons, run `sinfo --list-reasons`"
        return Finding(part=part, check="probe job", level="error", found=found, remedy=remedy)
    if reason in BUSY or probe.seen.state != "PENDING":
        remedy = f"no node was examined; to wait longer, pass --wait-s {10 * wait_s:g}"
        return Finding(part=part, check="probe job", level="warning", found=found, remedy=remedy)
    if any(word in reason for word in ("QOS", "Assoc", "Account", "Limit", "Max")):
        remedy = "held by a limit of the account, the QOS or the partition; choose others with --sbatch account=, qos="
    else:
        remedy = f"runs would wait for the same reason; see `scontrol show job` and `scontrol show partition {name}`"
    return Finding(part=part, check="probe job", level="error", found=found, remedy=remedy)
