"""Checks of Slurm's configuration: commands, controller, partitions, preemption, limits and accounting."""

import math
import os
import re
import time
from collections.abc import Collection, Iterator

from ablations.slurm import commands
from ablations.slurm.commands import NodeGroup, Partition
from ablations.slurm.queue_cache import ASK_EVERY_S
from ablations.slurm.requeue import SIGNAL_BEFORE_LIMIT_S
from ablations.text import MINUTE_S, counted, duration_text
from scalerl.checks.finding import Finding, judged

SLURM_PART = "Slurm"
AWAY = re.compile("down|drain|fail|maint|reboot|unknown|future|inval|no_respond")
"""States of nodes that accept no jobs; nodes in power saving wake up for a job."""
CHECKPOINT_S = SIGNAL_BEFORE_LIMIT_S
"""Seconds that a checkpoint may need: as many as the platform reserves before a time limit."""
UNCONFIGURED = "Could not establish a configuration source"
"""The message of Slurm's commands on a machine that belongs to no cluster."""
USUAL_KILL_WAIT_S = 30.0


def check_commands(*, is_asked_for: bool) -> Finding:
    """Check that Slurm is installed; a machine without any of it passes if no cluster was asked for."""
    missing = commands.missing()
    if missing == commands.NEEDED and not is_asked_for:
        found = "no Slurm here, so `platform sweep` trains on this machine; a cluster's login node gets more checks"
        return Finding(part=SLURM_PART, check="commands", level="ok", found=found)
    return judged(
        SLURM_PART,
        "commands",
        f"not in PATH: {', '.join(missing)}" if missing else "",
        ", ".join(commands.NEEDED),
        "run this on a login node of the cluster, after `module load slurm` if needed; without Slurm, `platform sweep` "
        "trains on this machine",
    )


def check_controller(*, is_asked_for: bool) -> Finding:
    """Check that slurmctld answers; commands without a cluster are an error only if a cluster was asked for."""
    began = time.monotonic()
    try:
        commands.ping()
    except commands.SlurmSilent as error:
        if UNCONFIGURED in str(error) and "SLURM_CONF" not in os.environ and not is_asked_for:
            found = "Slurm's commands are installed, but no cluster is configured, so `platform sweep` trains here"
            remedy = "on a login node of a cluster, set SLURM_CONF to its slurm.conf"
            return Finding(part=SLURM_PART, check="controller", level="warning", found=found, remedy=remedy)
        remedy = "ask the cluster's administrators; SLURM_CONF must name the configuration if it is not in /etc/slurm"
        return Finding(part=SLURM_PART, check="controller", level="error", found=str(error), remedy=remedy)
    took = time.monotonic() - began
    settings = commands.settings()
    host = settings.get("SlurmctldHost", "slurmctld").partition("(")[0]
    found = f"Slurm {settings['SLURM_VERSION']} on {host} of cluster {settings['ClusterName']}, answers in {took:.2f} s"
    return Finding(part=SLURM_PART, check="controller", level="ok", found=found)


def check_partitions(named: Collection[str], probed: Collection[str]) -> Iterator[Finding]:
    """Limits and nodes of the named partitions, or of all; a partition to probe must have nodes."""
    partitions, nodes, details = commands.partitions(), commands.nodes(), commands.partition_settings()
    if not any(one.is_default for one in partitions):
        remedy = f"choose one with `resources: {{partition: {partitions[0].name}}}`" if partitions else ""
        yield Finding(
            part=SLURM_PART, check="partitions", level="warning", found="no partition is the default", remedy=remedy
        )
    for one in partitions:
        if named and one.name not in named:
            continue
        text, state = limits_text(one), details.get(one.name, {}).get("State", "UP")
        up, away = up_and_away(one.name, nodes)
        reasons = "; ".join(dict.fromkeys(group.reason for group in away if group.reason))
        lost = sum(group.number for group in away)
        text += f"; {up} of {counted(one.nodes, 'node')} up"
        if lost:
            text += f" ({', '.join(f'{group.number} {group.state}' for group in away)})"
        problem = f"{text}; the partition is {state}" if state != "UP" else text if up == 0 else ""
        why = f"Slurm gives the reason: {reasons}. " if reasons else ""
        yield judged(
            SLURM_PART,
            f"partition {one.name}",
            problem,
            text,
            f"{why}Use another partition until the nodes return; for Slurm's reasons, run `sinfo --list-reasons`",
            level="error" if one.name in probed else "warning",
        )


def up_and_away(partition: str, nodes: Collection[NodeGroup]) -> tuple[int, list[NodeGroup]]:
    """Number of nodes in a partition that accept jobs, and the nodes that do not."""
    mine = [group for group in nodes if group.partition == partition]
    away = [group for group in mine if AWAY.match(group.state)]
    return sum(group.number for group in mine) - sum(group.number for group in away), away


def limits_text(one: Partition) -> str:
    """The limits of a partition: `the default, at most 2 h per job; largest node 4 cores, 7.8 GB, no GPU`."""
    minutes = one.time_limit_min
    limit = "no time limit" if math.isinf(minutes) else f"at most {duration_text(MINUTE_S * minutes)} per job"
    gpus = counted(one.gpus, "GPU") if one.gpus else "no GPU"
    size = f"largest node {counted(one.cpus, 'core')}, {one.memory_mb / 1024:.0f} GB, {gpus}"
    return f"{'the default, ' if one.is_default else ''}{limit}; {size}"


def check_preemption(probed: Collection[str]) -> Iterator[Finding]:
    """Check whether jobs may be preempted, and how much time they then have."""
    settings, details = commands.settings(), commands.partition_settings()
    kind = settings.get("PreemptType", "preempt/none").partition("/")[2]
    if kind == "none":
        yield Finding(part=SLURM_PART, check="preemption", level="ok", found="jobs are not preempted")
        return
    if kind == "qos":
        found = "the QOS decides which jobs are preempted, and sets their grace time"
        show = "`sacctmgr show qos format=Name,PreemptMode,GraceTime`"
        remedy = f"use a QOS with {CHECKPOINT_S:g} s; to list them, run {show}"
        yield Finding(part=SLURM_PART, check="preemption", level="warning", found=found, remedy=remedy)
        return
    top = max(int(one.get("PriorityTier", 1)) for one in details.values())
    for name in probed:
        mode = details[name].get("PreemptMode", settings.get("PreemptMode", "OFF"))
        if int(details[name].get("PriorityTier", 1)) == top or mode == "OFF":
            found = "jobs of this partition are not preempted"
            yield Finding(part=SLURM_PART, check=f"preemption {name}", level="ok", found=found)
        else:
            yield preempted(name, mode, seconds(details[name].get("GraceTime", "0")))


def preempted(name: str, mode: str, grace_s: float) -> Finding:
    """The consequence of preemption for runs in a partition."""
    fine, problem = f"a preempted job is requeued and has {grace_s:g} s for its checkpoint", ""
    remedy = (
        f"ask the administrators for GraceTime={CHECKPOINT_S:g} on {name}; with less, a run repeats the steps since "
        "its checkpoint"
    )
    if "REQUEUE" not in mode:
        problem = f"a preempted job is not requeued (PreemptMode={mode})"
        remedy = "use a partition with PreemptMode=REQUEUE, or resubmit what is missing with `platform sweep FILE`"
    elif grace_s < CHECKPOINT_S:
        problem = f"{fine}, less than the {CHECKPOINT_S:g} s that the platform allows before a time limit"
    return judged(SLURM_PART, f"preemption {name}", problem, fine, remedy, level="warning")


def check_job_rules() -> Iterator[Finding]:
    """Check array sizes, and the time that a cancelled job has."""
    settings = commands.settings()
    most = int(settings.get("MaxArraySize", "1001")) - 1
    found = f"at most {most} runs per array; a larger sweep becomes several arrays"
    remedy = "the platform submits runs as arrays; ask the administrators for MaxArraySize=1001"
    yield judged(SLURM_PART, "arrays", "MaxArraySize allows no arrays" if most < 1 else "", found, remedy)
    wait_s = seconds(settings.get("KillWait", "30"))
    found = f"a cancelled job has {wait_s:g} s (KillWait) to save its checkpoint"
    remedy = (
        "ask the administrators for KillWait=30, Slurm's default; with less, runs may lose steps since a checkpoint"
    )
    yield judged(SLURM_PART, "cancelling", found if wait_s < USUAL_KILL_WAIT_S else "", found, remedy, level="warning")


def check_accounting() -> Finding:
    """Check how long Slurm remembers why a job ended."""
    problem = commands.accounting_problem()
    keep_s = seconds(commands.settings().get("MinJobAge", "300"))
    if not problem:
        return Finding(part=SLURM_PART, check="accounting", level="ok", found="sacct knows how every job ended")
    if keep_s == 0:  # Slurm's word for never
        found = f"{problem}; the queue lists ended jobs (MinJobAge=0) until slurmctld forgets them"
    else:
        found = f"{problem}; Slurm forgets how a job ended after {keep_s:g} s (MinJobAge)"
    if 0 < keep_s < 2 * ASK_EVERY_S:
        found += ", perhaps before the platform asks again"
    remedy = (
        "keep `platform status -w` open while jobs run. A run whose end was not observed shows as lost; to resume it, "
        "run `platform sweep FILE`. The administrators can add slurmdbd"
    )
    return Finding(part=SLURM_PART, check="accounting", level="warning", found=found, remedy=remedy)


def seconds(text: str) -> float:
    """Seconds in `30 sec`, `10` or `00:02:00`."""
    clock = text.partition(" ")[0]
    return 60 * commands.minutes(clock) if ":" in clock else float(commands.leading_int(clock))
