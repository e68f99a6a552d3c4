"""Judges a node of a cluster against this machine, with a remedy for each problem."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ablations.pools.code_snapshot import PACKAGES
from ablations.slurm import commands
from ablations.slurm.commands import Partition
from ablations.slurm.doctor.cluster import seconds
from ablations.slurm.doctor.examine_node import look_at_lock
from ablations.slurm.doctor.here import check_engine_versions, check_modules
from ablations.slurm.doctor.probe_job import SHARED, Probe, no_report
from ablations.slurm.doctor.question import DoctorQuestion
from ablations.slurm.doctor.training import NUM_DEVICES, lay_run, resolved_recipe, training_finding
from ablations.text import counted
from scalerl.checks.finding import Finding, judged

CLOCK_LIMIT_S = 10.0
"""Largest difference between clocks; beyond it heartbeats look old and times in MLflow are wrong."""
LITTLE_TMP_GB = 2.0
KILL_MARGIN_S = 60.0
LOCKS_REMEDY = (
    "without locks, two jobs may train one run; choose another home folder, or mount this one with locks (flock)"
)


def check_node(question: DoctorQuestion, partition: Partition, here: dict[str, Any]) -> Iterator[Finding]:
    """Submit one probe and judge its reports; the job is cancelled afterwards. `here` is this machine's
    `look_at_machine`."""
    part = f"a node of partition {partition.name}"
    with Probe(question, partition) as probe:
        recipe = resolved_recipe(here["engines"]) if probe.trains else None
        if refused := probe.submit(**lay_run(probe.folder, recipe) if recipe else {}):
            asks = f"the job requests {counted(probe.cpus, 'processor')} and {probe.memory_mb} MB"
            remedy = f"{asks}; a run with the same request would be rejected too; change it with --sbatch NAME=VALUE"
            yield judged(part, "probe job", refused, "", remedy)
            return
        there = probe.report("report.json", "examines")
        if there is None:
            yield no_report(part, probe)
            return
        found = f"job {probe.job} started after {probe.started:.0f} s on {there['host']}"
        yield Finding(part=part, check="probe job", level="ok", found=found)
        python, python_here = ("{version} at {path}".format(**one["python"]) for one in (there, here))
        problem = f"{python}; here {python_here}" if python != python_here else ""
        remedy = "install one Python on the shared file system"
        yield judged(part, "Python", problem, f"{there['python']['version']}, as here", remedy)
        yield from check_folder(part, there, here, probe.folder, snapshot=probe.snapshot, word=probe.word)
        yield check_gpus(part, there["gpus"], partition, asked=probe.gpus)
        if recipe:
            report = probe.report("training.json", "trains for about a minute on")
            yield no_report(part, probe) if report is None else training_finding(part, report, recipe)
            if report is None:
                return
        elif question.trains:
            found = f"not trained: nodes have {counted(partition.gpus, 'GPU')}, but the run needs {NUM_DEVICES}"
            yield judged(part, "training", found, "", "choose another --partition", level="warning")
        yield from check_signals(part, probe)


def check_folder(
    part: str, there: dict[str, Any], here: dict[str, Any], folder: Path, *, snapshot: Path, word: str
) -> Iterator[Finding]:
    """Check what every cluster needs: code, home folder and locks on both sides, engines, and temporary space.

    The report itself proves that this machine reads what the node writes; the repeated `word`, the other direction.
    """
    yield from check_code(part, there["modules"], here["modules"], snapshot)
    problem = "" if there["word"] == word else "the node cannot read files written here"
    yield judged(part, "home folder", problem, "read and written from both sides", SHARED)
    seen = there["here_lock"]
    problem = "" if seen == "held" else f"the node sees a lock held here as {seen}"
    yield judged(part, "lock of here", problem, "held here, seen as held on the node", LOCKS_REMEDY)
    problem = there["node_lock"]
    if not problem and (seen := look_at_lock(folder / "node.lock")) != "held":
        problem = f"this machine sees a lock held on the node as {seen}"
    yield judged(part, "lock of node", problem, "held on the node, seen as held here", LOCKS_REMEDY)
    yield check_engine_versions(part, there, here)
    found = f"{there['tmp']['path']}: {there['tmp']['free_gb']:.0f} GB free"
    problem = found if there["tmp"]["free_gb"] < LITTLE_TMP_GB else ""
    remedy = "point TMPDIR elsewhere, for example with `setup: [export TMPDIR=/scratch/$USER]`"
    yield judged(part, "temporary", problem, found, remedy, level="warning")


Modules = dict[str, dict[str, str]]


def check_code(part: str, there: Modules, here: Modules, snapshot: Path) -> Iterator[Finding]:
    """Check that the node has the same packages, and this project's own from the snapshot."""
    remedy = "install the package where nodes find it, or fix PYTHONPATH in the setup lines"
    yield from check_modules(part, there, remedy)
    own = {name: Path(there[name]["folder"]) for name in PACKAGES if "error" not in there[name]}
    elsewhere = [str(folder) for name, folder in own.items() if folder != snapshot / name]
    problem = f"jobs would run {' and '.join(elsewhere)} instead of the code that was submitted"
    remedy = "a setup line replaces PYTHONPATH; change it to `export PYTHONPATH=$PYTHONPATH:...`"
    if own:
        yield judged(part, "code", problem if elsewhere else "", "from the snapshot taken at submission", remedy)
    remedy = "install one environment on the shared file system, so that every run gives the same numbers"
    for name in (name for name in there if name not in own):
        version, version_here = there[name].get("version"), here[name].get("version", "not installed")
        if version is not None and version != version_here:
            found = f"{version} on the node, {version_here} here"
            yield judged(part, name, found, "", remedy, level="warning")


def check_gpus(part: str, gpus: dict[str, Any], partition: Partition, *, asked: int) -> Finding:
    """Check that torch can use the GPUs that Slurm promises and the driver lists; the probe asked for some of them."""
    listed, usable, nccl = gpus["listed"], gpus["torch"], gpus["nccl"]
    has = f"nvidia-smi lists {len(listed) or 'none'}, torch can use {usable or 'none'}"
    promised, level = f"the partition has {counted(partition.gpus, 'GPU')} per node and the probe asked for", "error"
    problem, remedy = "", "install a torch for this driver (not +cpu)"
    found = f"{has} of the {asked} requested by the probe: {listed[0] if listed else 'GPU'}, NCCL {nccl}"
    if partition.gpus and not usable:
        problem = f"{promised} {asked}, but {has}"
        remedy = remedy if listed else "ask the administrators why nodes lack the driver (nvidia-smi)"
    elif listed and not partition.gpus:
        problem, level = has, "warning"
        remedy = "Slurm does not know these GPUs, so jobs may share one; ask the administrators for Gres=gpu"
    elif not usable:
        found = "none, in agreement with Slurm"
    elif not nccl:
        problem = f"{has}, but this torch lacks NCCL, which training on several GPUs needs"
        remedy = "install a torch built with NCCL, such as the Linux wheels"
    return judged(part, "GPUs", problem, found, remedy, level=level)


def check_signals(part: str, probe: Probe) -> Iterator[Finding]:
    """Check SIGUSR2 as before a time limit, SIGTERM as from scancel, the time until SIGKILL, and the node's clock."""
    say = probe.question.say
    say(f"job {probe.job}: signals")
    asked = time.time()
    commands.send_signal(probe.job, "USR2")
    came, answered = probe.wait_for_signal("SIGUSR2"), time.time()
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
        problem = f"job {probe.job} is still running {kill_wait_s + KILL_MARGIN_S:g} s after scancel"
    remedy = "a cancelled or preempted run could not save its checkpoint; ask which prolog or wrapper blocks signals"
    fine = f"arrives: a cancelled job had {alive_s:.1f} s until SIGKILL (KillWait {kill_wait_s:g} s)"
    yield judged(part, "SIGTERM", problem, fine, remedy)


def check_clock(part: str, asked: float, came: float, answered: float) -> Finding:
    """Compare clocks: the node's showed `came` at some moment between `asked` and `answered` here."""
    least, most = max(came - answered, asked - came, 0.0), max(came - asked, answered - came)
    found = f"differs from the clock here by at most {most:.1f} s"
    problem = f"differs from the clock here by {least:.0f} s" if least > CLOCK_LIMIT_S else ""
    remedy = "ask the administrators for NTP on the nodes; without it heartbeats look old"
    return judged(part, "clock", problem, found, remedy, level="warning")
