"""Explains why a probe sent no report: it still waits, Python did not start, or the node cannot see the home folder."""

import sys

from ablations.slurm import commands
from ablations.slurm.doctor.cluster import up_and_away
from ablations.slurm.doctor.probe_job import NOT_STARTED, Probe
from scalerl.checks.finding import Finding

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
