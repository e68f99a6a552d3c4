"""When a job goes back to the queue: before its time limit, after preemption, or without its first node."""

import os
import re
import socket
import time
from contextlib import suppress

from ablations.slurm import commands

SIGNAL_BEFORE_LIMIT_S = 120
"""Seconds before the limit of a long job at which Slurm sends the signal; a checkpoint must fit into them."""
ASK_AGAIN_S = 5.0
"""Seconds between attempts while the controller does not answer."""
WAIT_FOR_THE_END_S = 300.0
"""Seconds that a job waits for Slurm to end it before it exits by itself; longer than any reasonable grace period."""
ANSWER_S = 5.0
"""Seconds within which a node's slurmd must accept a connection."""


def signal_before_limit_s(limit_min: int) -> int:
    """Seconds before the time limit at which Slurm sends the signal; a short job trains for half of its time."""
    return min(SIGNAL_BEFORE_LIMIT_S, limit_min * 60 // 2)


def is_stuck(*, num_steps: int, num_restarts: int) -> bool:
    """True if two jobs in a row reached their time limit without a step; a third would do no better."""
    return num_steps == 0 and num_restarts > 0


def requeue_this_job() -> None:
    """Requeue the job of this process; Slurm ends the process in the meantime.

    Returns after `WAIT_FOR_THE_END_S` if the controller does not answer for that long.
    """
    deadline = time.monotonic() + WAIT_FOR_THE_END_S
    while time.monotonic() < deadline:
        with suppress(commands.SlurmSilent):
            commands.requeue(own_job())
            time.sleep(WAIT_FOR_THE_END_S)
        time.sleep(ASK_AGAIN_S)


def is_preempted() -> bool:
    """True if Slurm is about to end this job for another one, or if the controller does not answer.

    Waiting in vain costs a node a few minutes; leaving costs the run its place in the queue.
    """
    try:
        return re.search(r"PreemptTime=\d", commands.run_command("scontrol", "show", "job", own_job())) is not None
    except commands.SlurmSilent:
        return True


def requeue_without_its_first_node() -> None:
    """Requeue this job if nobody listens on its first node. If only the run's process died, the batch script ends it.

    With `--no-kill` Slurm itself would let such a job idle until its time limit. Each of the other nodes does this; for
    all but the first one, Slurm answers that the job is already waiting.
    """
    job = own_job()
    with suppress(commands.SlurmError):
        address = commands.address_of_node(commands.first_node(job))
        try:
            socket.create_connection(address, timeout=ANSWER_S).close()
        except OSError:
            print(f"the first node of job {job} is gone; requeueing the job", flush=True)
            commands.requeue(job)


def own_job() -> str:
    """Slurm's id of this job; in an array the id of the task, since one task has its array's number as SLURM_JOB_ID."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]
