"""Judges the probe's report about a node, compared with this machine."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ablations.pools.code_snapshot import PACKAGES
from ablations.slurm import commands
from ablations.slurm.commands import Partition
from ablations.slurm.doctor.cluster import seconds
from ablations.slurm.doctor.examine_node import look_at_engines, python_version
from ablations.slurm.doctor.here import check_engine_versions, check_modules
from ablations.slurm.doctor.probe_job import SHARED, Probe, Probing, no_report
from ablations.text import counted
from scalerl.checks.finding import Finding, judged

CLOCK_LIMIT_S = 10.0
"""Largest difference between clocks; beyond it heartbeats look old and times in MLflow are wrong."""
LITTLE_TMP_GB = 2.0
KILL_MARGIN_S = 60.0
LOCKS_REMEDY = (
    "without locks, two jobs may train one run; choose another home folder, or mount this one with locks (flock)"
)


def check_node(probing: Probing, partition: Partition, here: dict[str, dict[str, str]]) -> Iterator[Finding]:
    """Submit one probe and judge its report, compared with the modules `here`; the job is cancelled afterwards."""
    part = f"a node of partition {partition.name}"
    with Probe(probing, partition) as probe:
        if refused := probe.submit():
            remedy = (
                "runs would be rejected too unless `resources:` differ; to test an option, pass --sbatch NAME=VALUE"
            )
            yield Finding(part=part, check="probe job", level="error", found=refused, remedy=remedy)
            return
        report = probe.report()
        if report is None:
            yield no_report(part, probe)
            return
        found = f"job {probe.job} started after {probe.started:.0f} s on {report['host']}"
        yield Finding(part=part, check="probe job", level="ok", found=found)
        yield check_python(part, report)
        yield from check_code(part, report, here, probe.snapshot)
        yield check_folder(part, report, probe.word)
        yield from check_locks(part, report, probe.folder)
        yield check_gpus(part, report, partition)
        yield check_engine_versions(part, report["engines"], look_at_engines(), has_gpus=report["gpus"]["torch"] > 0)
        yield check_tmp(part, report)
        yield from check_signals(part, probe)


def check_python(part: str, report: dict[str, Any]) -> Finding:
    path, version = report["python"]["path"], report["python"]["version"]
    same = (path, version) == (sys.executable, python_version())
    problem = "" if same else f"{version} at {path}; here {python_version()} at {sys.executable}"
    return judged(part, "Python", problem, f"{version}, as here", "install one Python on the shared file system")


def check_code(part: str, report: dict[str, Any], here: dict[str, dict[str, str]], snapshot: Path) -> Iterator[Finding]:
    """Check that the node has the same packages, and this project's own from the snapshot."""
    there = report["modules"]
    yield from check_modules(
        part, there, "install the package where nodes find it, or fix PYTHONPATH in the setup lines"
    )
    own = {name: Path(there[name]["folder"]) for name in PACKAGES if "error" not in there[name]}
    elsewhere = [str(folder) for name, folder in own.items() if folder != snapshot / name]
    problem = f"jobs would run {' and '.join(elsewhere)} instead of the code that was submitted"
    remedy = "a setup line replaces PYTHONPATH; change it to `export PYTHONPATH=$PYTHONPATH:...`"
    if own:
        yield judged(part, "code", problem if elsewhere else "", "from the snapshot taken at submission", remedy)
    for name in (name for name in there if name not in own):
        version, version_here = there[name].get("version"), here[name].get("version")
        if version is not None and version != version_here:
            found = f"{version} on the node, {version_here or 'not installed'} here"
            remedy = "install one environment on the shared file system, so that every run gives the same numbers"
            yield Finding(part=part, check=name, level="warning", found=found, remedy=remedy)


def check_folder(part: str, report: dict[str, Any], word: str) -> Finding:
    """Check that each side reads what the other writes: the report proves one direction, the word in it the other."""
    problem = "" if report["word"] == word else "the node cannot read files written here"
    return judged(part, "home folder", problem, "read and written from both sides", SHARED)


def check_locks(part: str, report: dict[str, Any], folder: Path) -> Iterator[Finding]:
    """Check that each side sees a lock held by the other."""
    seen = report["here_lock"]
    problem = "" if seen == "held" else f"the node sees a lock held here as {seen}"
    yield judged(part, "lock of here", problem, "held here, seen as held on the node", LOCKS_REMEDY)
    problem = report["node_lock"]
    if not problem:
        try:
            with FileLock(folder / "node.lock", timeout=0):
                problem = "a lock held on the node looks free here"
        except Timeout:
            pass
        except (OSError, NotImplementedError) as error:
            problem = str(error)
    yield judged(part, "lock of node", problem, "held on the node, seen as held here", LOCKS_REMEDY)


def check_gpus(part: str, report: dict[str, Any], partition: Partition) -> Finding:
    """Check that torch can use the GPUs that Slurm promises and the driver lists."""
    listed, usable = report["gpus"]["listed"], report["gpus"]["torch"]
    has = f"nvidia-smi lists {len(listed) or 'none'}, torch can use {usable or 'none'}"
    if partition.gpus and not usable:
        problem = f"the partition has {counted(partition.gpus, 'GPU')} per node and the probe asked for one, but {has}"
        remedy = (
            "install a torch for this driver (not +cpu)"
            if listed
            else "ask the administrators why nodes lack the driver (nvidia-smi)"
        )
        return Finding(part=part, check="GPUs", level="error", found=problem, remedy=remedy)
    if listed and not partition.gpus:
        remedy = "Slurm does not know these GPUs, so jobs may share one; ask the administrators for Gres=gpu"
        return Finding(part=part, check="GPUs", level="warning", found=has, remedy=remedy)
    if not usable:
        return Finding(part=part, check="GPUs", level="ok", found="none, in agreement with Slurm")
    nccl = report["gpus"]["nccl"]
    found = f"{has} of the one GPU requested by the probe: {listed[0] if listed else 'GPU'}, NCCL {nccl or 'none'}"
    problem = "" if nccl else f"{has}, but this torch lacks NCCL, which training on several GPUs needs"
    return judged(part, "GPUs", problem, found, "install a torch built with NCCL, such as the Linux wheels")


def check_tmp(part: str, report: dict[str, Any]) -> Finding:
    """Check that the temporary folder, used by the code sandbox and compilers, has space."""
    found = f"{report['tmp']['path']}: {report['tmp']['free_gb']:.0f} GB free"
    little = report["tmp"]["free_gb"] < LITTLE_TMP_GB
    remedy = "point TMPDIR elsewhere, for example with `setup: [export TMPDIR=/scratch/$USER]`"
    return judged(part, "temporary", found if little else "", found, remedy, level="warning")


def check_signals(part: str, probe: Probe) -> Iterator[Finding]:
    """Check SIGUSR2 as before a time limit, SIGTERM as from scancel, the time until SIGKILL, and the node's clock."""
    say = probe.probing.say
    say(f"job {probe.job}: signals")
    asked = time.time()
    commands.send_signal(probe.job, "USR2")
    came = probe.wait_for_signal("SIGUSR2")
    answered = time.time()
    remedy = "runs could not save a checkpoint before their time limit; ask which prolog or wrapper blocks signals"
    problem = "sent to the job, but never reached its process" if came is None else ""
    yield judged(part, "SIGUSR2", problem, "arrives: runs save a checkpoint before their time limit", remedy)
    if came is not None:
        yield check_clock(part, asked, came, answered)
    kill_wait_s = seconds(commands.settings().get("KillWait", "30"))
    say(f"job {probe.job}: cancelled, with {kill_wait_s:g} s to end")
    commands.cancel_jobs([probe.job])
    came = probe.wait_for_signal("SIGTERM")
    alive_s = probe.wait_for_end(kill_wait_s + KILL_MARGIN_S)
    problem = "never reached the cancelled process" if came is None else ""
    if not probe.has_ended:
        problem = f"job {probe.job} still runs {kill_wait_s + KILL_MARGIN_S:g} s after scancel"
    remedy = "a cancelled or preempted run could not save its checkpoint; ask which prolog or wrapper blocks signals"
    fine = f"arrives: a cancelled job had {alive_s:.1f} s until SIGKILL (KillWait {kill_wait_s:g} s)"
    yield judged(part, "SIGTERM", problem, fine, remedy)


def check_clock(part: str, asked: float, came: float, answered: float) -> Finding:
    """Compare clocks: the node's showed `came` at some moment between `asked` and `answered` here."""
    least = max(came - answered, asked - came, 0.0)
    most = max(came - asked, answered - came)
    found = f"differs from the clock here by at most {most:.1f} s"
    problem = f"differs from the clock here by {least:.0f} s" if least > CLOCK_LIMIT_S else ""
    remedy = "ask the administrators for NTP on the nodes; without it heartbeats look old"
    return judged(part, "clock", problem, found, remedy, level="warning")
