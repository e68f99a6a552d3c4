"""Checks of Slurm's configuration: commands, controller, partitions, preemption, limits and accounting."""

import math
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from ablations.slurm import commands
from ablations.slurm.commands import NodeGroup, Partition
from ablations.slurm.queue_cache import ASK_EVERY_S
from ablations.slurm.requeue import SIGNAL_BEFORE_LIMIT_S
from ablations.text import MINUTE_S, counted, duration_text
from scalerl.checks.finding import Finding, judged

SLURM_PART = "Slurm"
AWAY = re.compile("down|drain|fail|maint|reboot|unknown|future|inval|no_respond")
"""States of nodes that accept no jobs; power-saving nodes are not among them, since they wake up."""
CHECKPOINT_S = SIGNAL_BEFORE_LIMIT_S
"""Seconds that a checkpoint may need: as many as the platform reserves before a time limit."""
UNCONFIGURED = "Could not establish a configuration source"
"""The message of Slurm's commands on a machine that belongs to no cluster."""
USUAL_KILL_WAIT_S = 30.0


def check_commands(*, is_asked_for: bool) -> Finding:
    """Check that Slurm is installed; a machine without any of it passes if no cluster was asked for."""
    missing, found = commands.missing(), ", ".join(commands.NEEDED)
    problem = f"not in PATH: {', '.join(missing)}" if missing else ""
    if missing == commands.NEEDED and not is_asked_for:
        problem = ""
        found = "no Slurm here, so `platform sweep` trains on this machine; a cluster's login node gets more checks"
    remedy = (
        "run this on a login node of the cluster, after `module load slurm` if needed; without Slurm, `platform sweep` "
        "trains on this machine"
    )
    return judged(SLURM_PART, "commands", problem, found, remedy)


def check_controller(*, is_asked_for: bool) -> Finding:
    """Check that slurmctld answers; commands without a cluster are an error only if a cluster was asked for."""
    began = time.monotonic()
    try:
        commands.ping()
    except commands.SlurmSilent as error:
        if UNCONFIGURED in str(error) and "SLURM_CONF" not in os.environ and not is_asked_for:
            problem = "Slurm's commands are installed, but no cluster is configured, so `platform sweep` trains here"
            remedy = "on a login node of a cluster, set SLURM_CONF to its slurm.conf"
            return judged(SLURM_PART, "controller", problem, "", remedy, level="warning")
        remedy = "ask the cluster's administrators; SLURM_CONF must name the configuration if it is not in /etc/slurm"
        return judged(SLURM_PART, "controller", str(error), "", remedy)
    took, settings = time.monotonic() - began, commands.settings()
    host = settings.get("SlurmctldHost", "slurmctld").partition("(")[0]
    found = f"Slurm {settings['SLURM_VERSION']} on {host} of cluster {settings['ClusterName']}, answers in {took:.2f} s"
    return Finding(part=SLURM_PART, check="controller", level="ok", found=found)


def check_configuration(named: Collection[str], probed: Collection[str]) -> Iterator[Finding]:
    """Check the named partitions, or all of them; preemption in those to probe; and the rules for all jobs."""
    settings, details = commands.settings(), commands.partition_settings()
    partitions, nodes = commands.partitions(), commands.nodes()
    if not any(one.is_default for one in partitions):
        remedy = f"choose one with `resources: {{partition: {partitions[0].name}}}`" if partitions else ""
        yield judged(SLURM_PART, "partitions", "no partition is the default", "", remedy, level="warning")
    for one in partitions:
        if not named or one.name in named:
            state = details.get(one.name, {}).get("State", "UP")
            yield check_partition(one, nodes, state, is_probed=one.name in probed)
    yield from check_preemption(settings, details, probed)
    most, kill_s = int(settings.get("MaxArraySize", "1001")) - 1, seconds(settings.get("KillWait", "30"))
    found = f"at most {most} runs per array; a larger sweep becomes several arrays"
    remedy = "the platform submits runs as arrays; ask the administrators for MaxArraySize=1001"
    yield judged(SLURM_PART, "arrays", "MaxArraySize allows no arrays" if most < 1 else "", found, remedy)
    found = f"a cancelled job has {kill_s:g} s (KillWait) to save its checkpoint"
    remedy = (
        "ask the administrators for KillWait=30, Slurm's default; with less, runs may lose steps since a checkpoint"
    )
    yield judged(SLURM_PART, "cancelling", found if kill_s < USUAL_KILL_WAIT_S else "", found, remedy, level="warning")
    yield check_accounting(seconds(settings.get("MinJobAge", "300")))


def check_partition(one: Partition, nodes: Iterable[NodeGroup], state: str, *, is_probed: bool) -> Finding:
    """The limits and nodes of a partition, `the default, at most 2 h per job; largest node 4 cores, 8 GB, no GPU; 1 of
    1 node up`; a partition to probe must have nodes.
    """
    minutes = one.time_limit_min
    limit = "no time limit" if math.isinf(minutes) else f"at most {duration_text(MINUTE_S * minutes)} per job"
    gpus = counted(one.gpus, "GPU") if one.gpus else "no GPU"
    up, away, reasons = up_and_away(one.name, nodes)
    text = (
        f"{'the default, ' if one.is_default else ''}{limit}; largest node {counted(one.cpus, 'core')}, "
        f"{one.memory_mb / 1024:.0f} GB, {gpus}; {up} of {counted(one.nodes, 'node')} up"
    )
    text += f" ({', '.join(away)})" if away else ""
    problem = f"{text}; the partition is {state}" if state != "UP" else "" if up else text
    why = f"Slurm gives the reason: {reasons}. " if reasons else ""
    remedy = f"{why}Use another partition until the nodes return; for Slurm's reasons, run `sinfo --list-reasons`"
    level = "error" if is_probed else "warning"
    return judged(SLURM_PART, f"partition {one.name}", problem, text, remedy, level=level)


def up_and_away(partition: str, nodes: Iterable[NodeGroup]) -> tuple[int, list[str], str]:
    """The number of nodes that accept jobs, the others by state (`2 drained`), and Slurm's reasons (`disk is full;
    fan`)."""
    mine = [group for group in nodes if group.partition == partition]
    away = [group for group in mine if AWAY.match(group.state)]
    reasons = "; ".join(dict.fromkeys(group.reason for group in away if group.reason))
    up = sum(group.number for group in mine) - sum(group.number for group in away)
    return up, [f"{group.number} {group.state}" for group in away if group.number], reasons


def check_preemption(
    settings: Mapping[str, str], details: Mapping[str, Mapping[str, str]], probed: Collection[str]
) -> Iterator[Finding]:
    """Check whether jobs may be preempted, and how much time they then have."""
    kind = settings.get("PreemptType", "preempt/none").partition("/")[2]
    if kind == "none":
        yield Finding(part=SLURM_PART, check="preemption", level="ok", found="jobs are not preempted")
    elif kind == "qos":
        problem = "the QOS decides which jobs are preempted, and sets their grace time"
        show = "`sacctmgr show qos format=Name,PreemptMode,GraceTime`"
        remedy = f"use a QOS with {CHECKPOINT_S:g} s; to list them, run {show}"
        yield judged(SLURM_PART, "preemption", problem, "", remedy, level="warning")
    else:
        top = max(int(one.get("PriorityTier", 1)) for one in details.values())
        for name in probed:
            mode = details[name].get("PreemptMode", settings.get("PreemptMode", "OFF"))
            mode = "OFF" if int(details[name].get("PriorityTier", 1)) == top else mode
            yield preempted(name, mode, seconds(details[name].get("GraceTime", "0")))


def preempted(name: str, mode: str, grace_s: float) -> Finding:
    """The consequence of preemption for runs in a partition; its mode is OFF if its jobs are not preempted."""
    found, problem = f"a preempted job is requeued and has {grace_s:g} s for its checkpoint", ""
    remedy = (
        f"ask the administrators for GraceTime={CHECKPOINT_S:g} on {name}; with less, a run repeats the steps since "
        "its checkpoint"
    )
    if mode == "OFF":
        found = "jobs of this partition are not preempted"
    elif "REQUEUE" not in mode:
        problem = f"a preempted job is not requeued (PreemptMode={mode})"
        remedy = "use a partition with PreemptMode=REQUEUE, or resubmit what is missing with `platform sweep FILE`"
    elif grace_s < CHECKPOINT_S:
        problem = f"{found}, less than the {CHECKPOINT_S:g} s that the platform allows before a time limit"
    return judged(SLURM_PART, f"preemption {name}", problem, found, remedy, level="warning")


def check_accounting(keep_s: float) -> Finding:
    """Check how long Slurm remembers why a job ended; the queue lists ended jobs for `keep_s` seconds, 0 for ever."""
    if problem := commands.accounting_problem():
        problem += (
            f"; Slurm forgets how a job ended after {keep_s:g} s (MinJobAge)"
            if keep_s
            else ("; the queue lists ended jobs (MinJobAge=0) until slurmctld forgets them")
        )
        problem += ", perhaps before the platform asks again" if 0 < keep_s < 2 * ASK_EVERY_S else ""
    remedy = (
        "keep `platform status -w` open while jobs run. A run whose end was not observed shows as lost; to resume it, "
        "run `platform sweep FILE`. The administrators can add slurmdbd"
    )
    return judged(SLURM_PART, "accounting", problem, "sacct knows how every job ended", remedy, level="warning")


def seconds(text: str) -> float:
    """Seconds in `30 sec`, `10` or `00:02:00`."""
    clock = text.partition(" ")[0]
    return 60 * commands.minutes(clock) if ":" in clock else float(commands.leading_int(clock))
