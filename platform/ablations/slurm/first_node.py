"""Requeues a job whose first node is gone; with `--no-kill` Slurm would let it idle until its time limit."""

import socket
from contextlib import suppress

from ablations.slurm import commands

ANSWER_S = 5.0
"""Seconds within which a node's slurmd must accept a connection."""


def requeue_without_its_first_node(job: str) -> None:
    """Requeue a job if nobody listens on its first node. If only the run's process died, the batch script ends the job.

    Each of the other nodes does this; for all but the first one, Slurm answers that the job is already waiting.
    """
    with suppress(commands.SlurmError):
        address, port = commands.address_of_node(commands.first_node(job))
        if not _listens(address, port):
            print(f"the first node of job {job} is gone; requeueing the job", flush=True)
            commands.requeue(job)


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=ANSWER_S):
            return True
    except OSError:
        return False
