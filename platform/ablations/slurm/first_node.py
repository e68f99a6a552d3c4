"""A job whose first node is gone goes back to the queue: with `--no-kill` Slurm lets it stand until its time limit."""

import socket
from contextlib import suppress

from ablations.slurm import commands

ANSWER_S = 5.0
"""Within which a node's slurmd lets us connect."""


def requeue_without_its_first_node(job: str) -> None:
    """Requeue a job if nobody listens on its first node; where only the run's process died, its batch script ends it.

    Each of its other nodes does this; the second is told that the job waits already.
    """
    with suppress(commands.SlurmError):
        address, port = commands.address_of_node(commands.first_node(job))
        if not _listens(address, port):
            print(f"the first node of job {job} is gone; the job goes back to the queue", flush=True)
            commands.requeue(job)


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=ANSWER_S):
            return True
    except OSError:
        return False
