"""Checks whether a Ray cluster can run sweeps: it answers, and each of its nodes has what a run needs.

Slurm's doctor supplies the program that examines a node. It reserves nothing, so it runs beside jobs that train there.
"""

import json
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock

from ablations.errors import AblationsError
from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.pools.code_snapshot import take_snapshot
from ablations.ray.driver_process import DriverProcess, RayError, RayNode
from ablations.slurm.doctor.examine_node import look_at_machine
from ablations.slurm.doctor.here import check_here
from ablations.slurm.doctor.node import check_folder
from ablations.slurm.doctor.probe_job import NUM_JOB_LOG_LINES, remove
from ablations.text import counted
from scalerl.checks.finding import Finding, judged

RAY_PART = "Ray"
REPORT_LIMIT_S = 240.0
"""Seconds for a node's report: loading torch comes first."""
LOOK_FOR_REPORT_EVERY_S = 0.2


def examine_ray(home: Home, tracking_uri: str, say: Callable[[str], None]) -> Generator[Finding]:
    """Check this machine, the cluster, and each node; what the checks write is removed at the end."""
    is_new = not home.path.exists()
    here = look_at_machine()
    yield from check_here(home, tracking_uri, here)
    try:
        home.require_writable()
    except AblationsError:
        return  # reported by another finding
    folder = home.path / "doctor" / f"doctor.{uuid.uuid4().hex[:8]}"
    folder.mkdir(parents=True)
    driver = None
    try:
        say("connects to Ray")
        driver = DriverProcess(folder / "driver.log")
        yield cluster_finding(driver)
        snapshot = take_snapshot(Home(folder))
        for number, node in enumerate(driver.nodes):
            say(f"examines node {node.name}")
            yield from check_ray_node(driver, node, folder / str(number), snapshot, here)
    except RayError as error:
        what, _, remedy = str(error).rpartition(". ")
        yield Finding(part=RAY_PART, check="cluster", level="error", found=what or remedy, remedy=remedy)
    finally:
        if driver is not None:
            driver.close()
        remove(folder)
        if is_new:
            with suppress(OSError):
                home.path.rmdir()


def cluster_finding(driver: DriverProcess) -> Finding:
    """The cluster's version, address, nodes, CPUs and GPUs."""
    nodes = driver.nodes
    sums = {name: sum(node.resources.get(name, 0.0) for node in nodes) for name in ("CPU", "GPU")}
    amounts = ", ".join(counted(int(number), name) for name, number in sums.items() if number)
    several = f"a run may have up to {counted(len(nodes), 'node')}"
    found = f"ray {version('ray')}, {driver.address}: {counted(len(nodes), 'node')} with {amounts}; {several}"
    return Finding(part=RAY_PART, check="cluster", level="ok", found=found)


def check_ray_node(
    driver: DriverProcess, node: RayNode, folder: Path, snapshot: Path, here: dict[str, Any]
) -> Generator[Finding]:
    """Run the probe on a node and judge its report."""
    part, word = f"node {node.name} of Ray ({node.id[:8]})", uuid.uuid4().hex
    folder.mkdir()
    question = folder / "question.json"
    question.write_text(json.dumps({"word": word, "snapshot": str(snapshot)}))
    with FileLock(folder / "here.lock"):
        job = driver.examine(folder, node)
        try:
            limit = time.monotonic() + REPORT_LIMIT_S
            while not (folder / "report.json").exists() and not job.done() and time.monotonic() < limit:
                time.sleep(LOOK_FOR_REPORT_EVERY_S)
            if not (folder / "report.json").exists():
                yield no_report_finding(part, folder, job.why if job.done() else "")
                return
            there = json.loads((folder / "report.json").read_text())
            yield from check_worker(part, there, here, node)
            yield from check_folder(part, there, here, folder, snapshot=snapshot, word=word)
        finally:
            question.unlink()  # at which the probe ends
            job.ended.wait(REPORT_LIMIT_S)


def no_report_finding(part: str, folder: Path, why: str) -> Finding:
    """The finding for a node whose probe sent no report."""
    found, _, remedy = (why or f"no report within {REPORT_LIMIT_S:g} s").partition("; ")
    remedy = remedy or "Ray's workers must find Python and the packages of the project, as here"
    log = tuple(tail(folder / "job.log", NUM_JOB_LOG_LINES))
    return Finding(part=part, check="probe", level="error", found=found, remedy=remedy, log=log)


def check_worker(part: str, there: dict[str, Any], here: dict[str, Any], node: RayNode) -> Generator[Finding]:
    """Check that the node's Ray uses this Python, offers GPUs that torch can use, and does not run at low priority."""
    (version, path), version_here = (there["python"][key] for key in ("version", "path")), here["python"]["version"]
    problem = "" if version == version_here else f"{version} at {path}; here {version_here}"
    yield judged(part, "Python", problem, f"{version} at {path}", "install one version of Python on all nodes")
    number, usable, listed = int(node.resources.get("GPU", 0)), there["gpus"]["torch"], len(there["gpus"]["listed"])
    has = f"Ray offers {number or 'none'}, nvidia-smi lists {listed or 'none'}, torch can use {usable or 'none'}"
    remedy = "install a torch for this driver, or start Ray with the actual number of GPUs (--num-gpus)"
    yield judged(part, "GPUs", has if usable < number else "", has, remedy)
    found = f"niceness {there['niceness']}"
    problem = f"{found}: runs would yield to every other process on the node" if there["niceness"] > 0 else ""
    yield judged(part, "priority", problem, found, "start Ray with RAY_worker_niceness=0", level="warning")
