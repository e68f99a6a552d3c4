"""The probe as a Slurm job: submitted, followed, signalled, and always removed afterwards.

Ctrl-C and `kill` of the doctor cancel the job by its name. After `kill -9` nobody can cancel it: Slurm then removes a
waiting job at its deadline, a running one ends by itself after a few minutes, and the next doctor removes the folder.
"""

import json
import os
import shlex
import shutil
import sys
import time
import uuid
from contextlib import suppress
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
from ablations.slurm.doctor.question import DoctorQuestion
from ablations.slurm.doctor.training import LIMIT_S, MEMORY_MB, NUM_DEVICES
from scalerl.checks.finding import Finding

SETTLE_S = 5.0
"""Seconds that a file may take to appear here from a node."""
SIGNAL_LIMIT_S = 15.0
NODE_REPORT_LIMIT_S = 240.0
TIME_LIMIT_MIN = 10.0
"""Time limit of a job that only examines; torch may take minutes to load from a cold shared folder."""
EXAMINATION_MB = 2048
LOOK_AT_PROBE_EVERY_S = 0.2
ASK_SLURM_EVERY_S = 1.0
"""Seconds between two queries to Slurm; affordable for one job that lasts a minute or two."""
YOUNG_S = 60.0
NUM_JOB_LOG_LINES = 8
NOT_STARTED = frozenset({"PENDING", "CONFIGURING"})
"""Slurm's states of a job without a node, or with a node that is still waking up."""


class Probe:
    """One job in one partition, as a context manager that removes it on exit."""

    def __init__(self, question: DoctorQuestion, partition: Partition) -> None:
        self.question, self.partition = question, partition
        self.trains = question.trains and not 0 < partition.gpus < NUM_DEVICES
        self.cpus = NUM_DEVICES if self.trains else 1
        self.gpus = min(partition.gpus, self.cpus)
        of_training = MEMORY_MB if self.gpus else MEMORY_MB // 2
        self.memory_mb = of_training if self.trains else EXAMINATION_MB
        self.training_s = LIMIT_S if self.trains else 0.0
        self.name = f"doctor.{uuid.uuid4().hex[:8]}"
        self.folder = question.home.path / "doctor" / self.name
        self.word = uuid.uuid4().hex
        self.lock = FileLock(self.folder / "here.lock")
        self.job = ""
        self.seen: Job | None = None
        """Slurm's last answer about the job."""
        self.started = 0.0

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

    def submit(self, **run: Any) -> str:
        """Submit the job, which trains `run` if given; returns Slurm's message if it rejects the job, else an empty
        text.
        """
        self.snapshot = take_snapshot(Home(self.folder))
        (self.folder / "question.json").write_text(json.dumps({"word": self.word, **run}))
        program = self.snapshot / "ablations" / "slurm" / "doctor" / "examine_node.py"
        lines = (  # like submitit's for runs (`pool`)
            "#!/bin/bash",
            f"export {' '.join(f'{name}=1' for name in THREAD_VARIABLES)}",
            f"export PYTHONPATH={shlex.quote(str(self.snapshot))}",
            *self.question.setup,
            f"srun --unbuffered {shlex.join([sys.executable, '-P', '-u', str(program), str(self.folder)])}",
        )
        (self.folder / "job.sh").write_text("".join(f"{line}\n" for line in lines))
        try:
            with interrupts_wait(*TO_STOP):  # or sbatch might be killed between submitting and printing the job's id
                self.job = commands.submit(self.folder / "job.sh", *self._options())
        except commands.SlurmSilent:
            raise
        except commands.SlurmError as error:
            return str(error)
        return ""

    def _options(self) -> list[str]:
        time_min = max(1, round(min(TIME_LIMIT_MIN + self.training_s / 60, self.partition.time_limit_min)))
        deadline_s = round(self.question.wait_s + 60 * (time_min + 1))
        found = [f"--job-name={self.name}", f"--partition={self.partition.name}", "--nodes=1", "--ntasks=1"]
        found += [f"--cpus-per-task={self.cpus}", f"--mem={self.memory_mb}M", f"--time={time_min}", "--no-requeue"]
        found += [f"--output={self.folder / 'job.log'}", f"--deadline=now+{deadline_s}seconds"]
        found += [f"--gpus-per-node={self.gpus}"] if self.gpus else []
        return [*found, *(f"--{text}" for text in self.question.sbatch)]  # the last of two equal options counts

    def report(self, name: str, doing: str) -> dict[str, Any] | None:
        """A report of the node; None if the job still waits, ended without it, or takes too long."""
        began, asked, phase = time.monotonic(), 0.0, "waits"
        since = {phase: began}
        limits = {"waits": self.question.wait_s, "runs": NODE_REPORT_LIMIT_S + self.training_s, "has ended": SETTLE_S}
        while name not in self._names():
            now = time.monotonic()
            if now - asked >= ASK_SLURM_EVERY_S:
                asked, self.seen = now, self.ask()
                is_running = self.seen is not None and self.seen.state == "RUNNING"
                phase = "has ended" if self.has_ended else "runs" if is_running else phase
                since.setdefault(phase, now)
                said = f"job {self.job} {doing} a node of {self.partition.name}"
                if self.seen and self.seen.state in NOT_STARTED:
                    waited = f"{now - began:.0f} s in {self.partition.name}"
                    said = f"job {self.job} has waited for {waited}: {self.seen.reason}"
                self.question.say(said)
            if now - since[phase] > limits[phase]:
                return None
            time.sleep(LOOK_AT_PROBE_EVERY_S)
        self.started = since.get("runs", time.monotonic()) - began
        return json.loads((self.folder / name).read_text())

    def ask(self) -> Job | None:
        """The job as Slurm knows it; None once Slurm has forgotten it."""
        return next(iter(commands.queue(self.name)), None)

    @property
    def has_ended(self) -> bool:
        """True if Slurm last reported the job as ended or unknown."""
        return self.seen is None or self.seen.has_ended

    def signals(self, key: str) -> list[dict[str, Any]]:
        """The lines with this key in what the node recorded about signals."""
        found = []
        if "signals.jsonl" in self._names():
            for line in (self.folder / "signals.jsonl").read_text().splitlines():
                with suppress(ValueError):  # the last line may not be whole yet
                    found.append(json.loads(line))
        return [line for line in found if key in line]

    def wait_for_signal(self, name: str) -> float | None:
        """Time at which the node received the signal, by its own clock in seconds since 1970; None if it did not."""
        deadline = time.monotonic() + SIGNAL_LIMIT_S
        while time.monotonic() < deadline:
            if came := [line["time"] for line in self.signals("signal") if line["signal"] == name]:
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
        return max((line["alive_s"] for line in self.signals("alive_s")), default=0.0)

    def log(self) -> tuple[str, ...]:
        """The last lines printed by the job; empty if its log is not visible here."""
        return tuple(tail(self.folder / "job.log", NUM_JOB_LOG_LINES)) if "job.log" in self._names() else ()

    def _names(self) -> list[str]:
        # A listing asks the file server; NFS may answer whether one file exists from its cache for a minute.
        return os.listdir(self.folder)


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
    state = probe.seen.state if probe.seen else "gone from the queue"
    if probe.seen and state in NOT_STARTED:
        return waits_in_vain(part, probe, state, probe.seen.reason)
    if log := probe.log():
        found = f"{sys.executable} sent no report; job {probe.job} is {state}, and its last lines are below"
        remedy = (
            "nodes must find this Python, its packages and srun under the same paths as here; install them on the "
            "shared file system, and check what the setup lines change (PATH, PYTHONPATH, module load)"
        )
        return Finding(part=part, check="Python", level="error", found=found, remedy=remedy, log=log)
    found = f"job {probe.job} is {state} and left no log here: the node does not see {probe.folder.parent.parent}"
    return Finding(part=part, check="home folder", level="error", found=found, remedy=SHARED)


def waits_in_vain(part: str, probe: Probe, state: str, reason: str) -> Finding:
    """The finding for a probe that did not start: a warning on a busy cluster, an error if there are no nodes."""
    name, wait_s, level = probe.partition.name, probe.question.wait_s, "error"
    found = f"job {probe.job} is still waiting after {wait_s:g} s; Slurm's reason: {reason}"
    if state != "PENDING":
        found = f"job {probe.job} is still {state} after {wait_s:g} s"
    up, _, reasons = up_and_away(name, commands.nodes())
    if up == 0:
        found += f"; no node of {name} accepts jobs" + (f" ({reasons})" if reasons else "")
        remedy = "use another --partition, or wait until nodes return; for the reasons, run `sinfo --list-reasons`"
    elif reason in BUSY or state != "PENDING":
        level, remedy = "warning", f"no node was examined; to wait longer, pass --wait-s {10 * wait_s:g}"
    elif any(word in reason for word in ("QOS", "Assoc", "Account", "Limit", "Max")):
        remedy = "held by a limit of the account, the QOS or the partition; choose others with --sbatch account=, qos="
    else:
        remedy = f"runs would wait for the same reason; see `scontrol show job` and `scontrol show partition {name}`"
    return Finding(part=part, check="probe job", level=level, found=found, remedy=remedy)
