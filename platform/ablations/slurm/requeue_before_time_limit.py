"""The requeue before a time limit, so that a run may be longer than any job.

Slurm sends SIGUSR2 some time before the limit. The run writes its checkpoint and ends, and the job sends itself back to
the queue: it keeps its place, name and array, and Slurm counts its restarts.
"""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from ablations.slurm import commands

SIGNAL_BEFORE_LIMIT_S = 120
"""Seconds before the limit of a long job that Slurm sends the signal; a checkpoint must fit into them."""
ASK_AGAIN_S = 5.0
"""Seconds after which a controller that was silent is asked again."""


def signal_before_limit_s(limit_min: int) -> int:
    """Seconds before the time limit of a job that Slurm sends the signal: a short job trains half of its time."""
    return min(SIGNAL_BEFORE_LIMIT_S, limit_min * 60 // 2)


@dataclass
class TimeLimit:
    """The time limit of the job that this process is in."""

    is_near: bool = False
    """Whether Slurm has sent its signal."""

    def watch(self) -> None:
        """From here on the signal ends the training, which writes its checkpoint first.

        It replaces submitit's handler, which would requeue the job before the checkpoint is written.
        """
        signal.signal(signal.SIGUSR2, self._stop_training)

    def _stop_training(self, _: int, __: FrameType | None) -> None:
        self.is_near = True
        os.kill(os.getpid(), signal.SIGTERM)


def is_stuck(*, num_steps: int, num_restarts: int) -> bool:
    """Whether two jobs in a row reached their time limit without a step; a third would not make one either."""
    return num_steps == 0 and num_restarts > 0


def requeue_this_job(job: str, limit_s: float) -> None:
    """Send the job of this process back to the queue; Slurm ends the process meanwhile.

    Returns after `limit_s` when the controller was silent for so long.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with suppress(commands.SlurmSilent):
            commands.requeue(job)
            time.sleep(limit_s)
        time.sleep(ASK_AGAIN_S)
