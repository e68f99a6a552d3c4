"""A node's part of an attempt, inside a Ray worker: starts a separate process, waits for it, and cleans up after it.

The process has a session and an environment of its own, so that nothing from Ray enters it. If the worker ends, however
it ends, the warden kills the process.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ablations.pools.job import THREAD_VARIABLES
from ablations.ray.order import node_log, read_order
from scalerl.left_names import members_of_group, take_names_away
from scalerl.process_variables import VISIBLE_GPUS
from scalerl.warden import warden

LOOK_AT_PROCESS_EVERY_S = 0.2
RAYLET = "RAY_RAYLET_PID"
"""Ray's variable for the process that starts its workers and gives them their low priority."""
OF_RAY = frozenset({"PYTHONBREAKPOINT", "SPT_NOENV"})
"""Variables that Ray sets in its workers, in addition to those that begin with RAY_."""


def run_part(attempt: Path, node: int, host: str) -> str:
    """Do a node's part until its process ends; returns why it could not be started, if so."""
    order = read_order(attempt)
    threads = {name: str(order.threads) for name in THREAD_VARIABLES}
    # Ray names the GPUs of a worker, but may leave all of them visible to one that asked for none.
    gpus = {} if order.share.gpus else {VISIBLE_GPUS: ""}
    environment = ordinary_environment(os.environ, order.snapshot) | threads | gpus
    niceness = os.getpriority(os.PRIO_PROCESS, int(os.environ[RAYLET]))
    program = ["-P", "-m", "ablations.ray.job", str(attempt), str(node), host, str(niceness)]
    return run_python(program, environment, order.directory, node_log(attempt, node))


def run_probe(folder: Path, snapshot: Path) -> str:
    """Run the doctor's probe until the doctor has seen its report; returns why it could not be started, if so."""
    program = ["-P", str(snapshot / "ablations" / "slurm" / "doctor" / "examine_node.py"), str(folder)]
    environment = ordinary_environment(os.environ, snapshot)
    environment.pop(VISIBLE_GPUS, None)  # of the whole node, not of this worker
    return run_python(program, environment, folder, folder / "job.log")


def run_python(program: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path) -> str:
    """Run a Python program until it ends, and end any processes it leaves behind; returns why it could not be started,
    if so."""
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, *program],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory,
                start_new_session=True,
            )
    except OSError as error:
        return f"{error.filename}: {error.strerror or error}"
    warden.guard(process.pid)
    daemon = os.getppid()
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if os.getppid() != daemon:  # Ray may leave a worker whose daemon has lost the head node
            os._exit(1)  # at which the warden ends the process
        time.sleep(LOOK_AT_PROCESS_EVERY_S)
    take_names_away(members_of_group(process.pid))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # before it is reaped: afterwards its id may be another's
    process.wait()
    warden.release(process.pid)
    return ""


def ordinary_environment(variables: Mapping[str, str], snapshot: Path) -> dict[str, str]:
    """The worker's environment with the snapshot's code, and without Ray's own variables."""
    kept = {name: text for name, text in variables.items() if not name.startswith("RAY_") and name not in OF_RAY}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, [str(snapshot), variables.get("PYTHONPATH")]))}
