"""Slurm's own commands, which no other file runs. Results are plain data; `states` says what they mean for a run.

Jobs are named by id, an array task as `17_3`. If a command fails, SlurmError is raised with Slurm's own message. If the
controller does not answer, SlurmSilent is raised, which says nothing about the jobs.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.study.resources import minutes

MOST_ARGUMENTS = 500
"""Maximum number of jobs per command; more would not fit on a command line."""
COMMAND_LIMIT_S = 60.0
NEEDED = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
"""Commands that the platform needs; sacct is optional."""
HARMLESS = frozenset({"Job has already finished", "No error"})
"""scontrol's messages about tasks of an array that have already ended, and about those it held, if there are both."""
SILENT = re.compile(
    r"Unable to contact slurm controller|Connection refused|Socket timed out|Zero Bytes were transmitted"
    r"|Unexpected message received",
    re.IGNORECASE,
)

JOB_ID = re.compile(r"[0-9]+(_[0-9]+)?")
GONE = "GONE"
"""A state of our own, not Slurm's: neither the queue nor accounting knows the job any more, or how it ended."""
_WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_ENDED = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "REVOKED", "TIMEOUT", GONE,
    }
)  # fmt: skip


class SlurmError(AblationsError):
    """A Slurm command failed."""


class SlurmSilent(SlurmError):
    """The controller does not answer."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job or an array task: `Job(id="17_3", name="loo.4f2a91", state="PENDING", reason="Priority")`.

    `queue` lists ended jobs for a few minutes, `accounting` for months.
    """

    id: str
    name: str
    state: str
    """Slurm's state: PENDING, RUNNING, COMPLETED, TIMEOUT, OUT_OF_MEMORY, PREEMPTED, CANCELLED, FAILED, ..."""
    reason: str = ""
    """Slurm's reason for a waiting job."""

    @property
    def waits(self) -> bool:
        """True if the job has not started yet."""
        return self.state in _WAITING

    @property
    def has_ended(self) -> bool:
        """True if the job neither waits nor runs."""
        return self.state in _ENDED


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition with its limits and its largest node.

    Partition(name="low", is_default=True, time_limit_min=120.0, cpus=4, memory_mb=8000, gpus=0, nodes=1)
    """

    name: str
    is_default: bool
    time_limit_min: float
    """Time limit of a job; infinite if the partition has none."""
    cpus: int
    """Cores of the largest node; memory and GPUs are also those of the largest node."""
    memory_mb: int
    gpus: int
    nodes: int


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Nodes of a partition in one state: `NodeGroup(partition="low", state="drained", number=2, reason="disk")`."""

    partition: str
    state: str
    """Slurm's state without its suffix, as for unresponsive nodes: idle, mixed, allocated, down, ..."""
    number: int
    reason: str = ""
    """The reason why an administrator or Slurm took the nodes out of service."""


def missing() -> tuple[str, ...]:
    """Required commands that this machine lacks."""
    return tuple(name for name in NEEDED if shutil.which(name) is None)


def run_command(*command: str) -> str:
    """The output of a command of Slurm, run without the variables of the job that we may be in ourselves.

    SlurmError if the command fails or is not there; SlurmSilent if the controller gives no answer in time.
    """
    try:
        own = outside_of_jobs(os.environ)
        done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    except FileNotFoundError:
        raise SlurmError(f"{command[0]}: command not found; Slurm's commands must be in PATH on this machine") from None
    except subprocess.TimeoutExpired:
        raise SlurmSilent(f"{command[0]}: no answer within {COMMAND_LIMIT_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    said = " ".join((done.stderr or done.stdout).split())
    raise (SlurmSilent if SILENT.search(said) else SlurmError)(f"{command[0]}: {said}")


def outside_of_jobs(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment without Slurm's variables for the enclosing job, which sbatch would read as options."""
    own = ("SLURM_", "SBATCH_", "SRUN_")
    return {name: text for name, text in variables.items() if name == "SLURM_CONF" or not name.startswith(own)}


def ping() -> None:
    """Return if the controller answers; raises SlurmSilent if not."""
    try:
        run_command("scontrol", "ping")
    except SlurmError as error:
        raise SlurmSilent(str(error)) from None


def submit(script: Path, *options: str) -> str:
    """Submit a batch script and return its job id."""
    return run_command("sbatch", "--parsable", *options, str(script)).strip().partition(";")[0]


def queue(name: str | None = None) -> tuple[Job, ...]:
    """This user's jobs, optionally of one name, that wait, run, or ended in the last minutes."""
    command = ("squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r|%j")
    lines = run_command(*command, *([f"--name={name}"] if name else [])).splitlines()
    parts = (line.split("|", 3) for line in lines)
    return tuple(
        Job(id=job, name=name, state=state, reason="" if reason == "None" else reason)
        for job, state, reason, name in parts
    )


def accounting(names: Iterable[str], since: float) -> tuple[Job, ...]:
    """Ended jobs of this user with these names, submitted after `since` (seconds since 1970); empty without sacct."""
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
    command = ("sacct", "--noheader", "--parsable2", "--allocations", "--array", f"--starttime={start}")
    try:
        lines = run_command(*command, f"--name={','.join(names)}", "--format=JobID,State,JobName").splitlines()
    except SlurmSilent:
        raise
    except SlurmError:
        return ()
    parts = (line.split("|", 2) for line in lines)
    # Cut "CANCELLED by 1000" to CANCELLED.
    return tuple(Job(id=job, name=name, state=state.split()[0]) for job, state, name in parts)


def require_job(job: str, option: str) -> None:
    """Return if the queue or accounting knows a job; SlurmError names the option if not.

    Slurm itself treats a dependency on an unknown or forgotten job as fulfilled.
    """
    if not JOB_ID.fullmatch(job):
        raise SlurmError(f"{option} {job}: not a job id; write a number such as 17, or 17_3 for a task of an array")
    asked = (
        ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%i"),
        ("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=JobID"),
    )
    for command in asked:
        try:
            if run_command(*command).strip():
                return
        except SlurmSilent:
            raise
        except SlurmError:
            pass  # an unknown id is an error of squeue; a cluster may have no accounting
    raise SlurmError(
        f"{option} {job}: neither Slurm's queue nor its accounting knows this job, so nothing would be waited for; "
        f"correct the number, or omit {option} if the job has ended long ago"
    )


def cancel_jobs(jobs: Iterable[str]) -> None:
    """Cancel jobs; jobs that have ended are ignored."""
    named = list(jobs)
    for start in range(0, len(named), MOST_ARGUMENTS):
        run_command("scancel", *named[start : start + MOST_ARGUMENTS])


def cancel_named(name: str) -> None:
    """Cancel this user's jobs of this name, including one whose id sbatch had no time to print."""
    run_command("scancel", "--me", f"--name={name}")


def send_signal(job: str, signal: str) -> None:
    """Send a signal to the steps of a job but not to its script, as Slurm does before the time limit."""
    run_command("scancel", f"--signal={signal}", job)


def requeue(job: str) -> None:
    """Have Slurm put a job back into the queue, under its id."""
    run_command("scontrol", "requeue", job)


def first_node(job: str) -> str:
    """The node on which a job's batch script runs; SlurmError if it has none."""
    return _field("BatchHost", run_command("scontrol", "show", "job", job))


def address_of_node(name: str) -> tuple[str, int]:
    """Address and port of a node's slurmd."""
    said = run_command("scontrol", "show", "node", name)
    own = re.search(r"\bPort=(\d+)", said)  # shown only if it differs from the default
    return _field("NodeAddr", said), int(own[1] if own else settings()["SlurmdPort"])


def _field(name: str, said: str) -> str:
    found = re.search(rf"\b{name}=(\S+)", said)
    if found is None:
        raise SlurmError(f"scontrol show: no {name}")
    return found[1]


def hold(jobs: Iterable[str]) -> None:
    """Keep waiting jobs from starting; tasks of an array that have ended already are passed over."""
    if named := list(jobs):
        try:
            run_command("scontrol", "hold", ",".join(named))
        except SlurmError as error:
            # "scontrol: 17_0-1: Job has already finished 17_2-5: No error"
            if not {part.strip() for part in re.split(r"\S+: ", str(error)) if part.strip()} <= HARMLESS:
                raise


def settings() -> dict[str, str]:
    """All settings of the controller, by name: `{"MaxArraySize": "1001", ...}`."""
    pairs = re.findall(r"^(\w+)(?:\[0\])?\s*= ?(.*)$", run_command("scontrol", "show", "config"), re.MULTILINE)
    return {name: text.strip() for name, text in pairs}


def partition_settings() -> dict[str, dict[str, str]]:
    """The settings of each partition: GraceTime, PreemptMode, DefaultTime, ..."""
    lines = run_command("scontrol", "show", "partition", "--oneliner").splitlines()
    found = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
    return {one["PartitionName"]: one for one in found if "PartitionName" in one}


def nodes() -> tuple[NodeGroup, ...]:
    """The nodes of every partition, grouped by state and reason."""
    lines = run_command("sinfo", "--noheader", "--format=%R|%T|%D|%E").splitlines()
    parts = (line.split("|", 3) for line in lines)
    return tuple(
        NodeGroup(
            partition=partition,
            state=state.rstrip("*~#!%$@^-"),
            number=int(number),
            reason="" if reason == "none" else reason,
        )
        for partition, state, number, reason in parts
    )


def accounting_problem() -> str:
    """sacct's error message; empty if sacct works."""
    try:
        run_command("sacct", "--noheader", "--allocations", "--starttime=now-1minute")
    except SlurmError as error:
        return str(error)
    return ""


def partitions() -> tuple[Partition, ...]:
    """Every partition, with its largest node."""
    found: dict[str, Partition] = {}
    # Without --exact, different nodes share a line with the numbers of the smallest.
    for line in run_command("sinfo", "--exact", "--noheader", "--format=%P|%l|%c|%m|%G|%D").splitlines():
        name, limit, cpus, memory, gres, nodes = line.split("|")
        before = found.get(name.rstrip("*"))
        gpus = sum(map(int, re.findall(r"gpu(?::[^:,()]+)?:(\d+)", gres)))  # 8 of `gpu:h100:8(S:0-1),nic:1`
        numbers = {"cpus": leading_int(cpus), "memory_mb": leading_int(memory), "gpus": gpus}
        if before is not None:
            numbers = {key: max(number, getattr(before, key)) for key, number in numbers.items()}
        found[name.rstrip("*")] = Partition(
            name=name.rstrip("*"),
            is_default=name.endswith("*"),
            time_limit_min=minutes(limit),
            nodes=int(nodes) + (before.nodes if before else 0),
            **numbers,
        )
    return tuple(found.values())


def sbatch_options() -> frozenset[str]:
    """The long options in this cluster's `sbatch --help`; `takes_option` finds those that the help omits."""
    return frozenset(re.findall(r"--([a-z][a-z0-9-]+)", run_command("sbatch", "--help")))


def takes_option(name: str) -> bool:
    """True if sbatch has this long option; its help omits some, such as hint and acctg-freq. Submits nothing."""
    try:
        run_command("sbatch", f"--{name}=", "--version")
    except SlurmSilent:
        raise
    except SlurmError as error:
        return not re.search("unrecognized option|is ambiguous", str(error))
    return True


def qos_flags(name: str) -> frozenset[str]:
    """The flags of a quality of service, such as PartitionTimeLimit; empty without accounting."""
    try:
        text = run_command("sacctmgr", "--noheader", "--parsable2", "show", "qos", f"name={name}", "format=flags")
    except SlurmError:
        return frozenset()
    return frozenset(text.strip().split(",")) - {""}


def leading_int(text: str) -> int:
    """The leading number of text such as `"4+"`, which sinfo prints for several nodes."""
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
