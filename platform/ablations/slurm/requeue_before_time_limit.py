"""Requeues a job before its time limit, so that a run may be longer than any job.

Slurm sends SIGUSR2 some time before the limit. The run saves its checkpoint and ends, and the job requeues itself: it
keeps its place, name and array, and Slurm counts its restarts.
"""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from ablations.slurm import commands

SIGNAL_BEFORE_LIMIT_S = 120
"""Seconds before the limit of a long job at which Slurm sends the signal; a checkpoint must fit into them."""
ASK_AGAIN_S = 5.0
"""Seconds between attempts while the controller does not answer."""


def signal_before_limit_s(limit_min: int) -> int:
    """Seconds before the time limit at which Slurm sends the signal; a short job trains for half of its time."""
    return min(SIGNAL_BEFORE_LIMIT_S, limit_min * 60 // 2)


@dataclass
class TimeLimit:
    """The time limit of this process's job."""

    is_near: bool = False
    """True once Slurm has sent its signal."""

    def watch(self) -> None:
        """Let the signal end the training from now on; the training saves its checkpoint first.

        Replaces submitit's handler, which would requeue the job before the checkpoint is saved.
        """
        signal.signal(signal.SIGUSR2, self._stop_training)

    def _stop_training(self, _: int, __: FrameType | None) -> None:
        self.is_near = True
        os.kill(os.getpid(), signal.SIGTERM)


def is_stuck(*, num_steps: int, num_restarts: int) -> bool:
    """True if two jobs in a row reached their time limit without a step; a third would do no better."""
    return num_steps == 0 and num_restarts > 0


def requeue_this_job(job: str, limit_s: float) -> None:
    """Requeue the job of this process; Slurm ends the process in the meantime.

    Returns after `limit_s` if the controller does not answer for so long.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with suppress(commands.SlurmSilent):
            commands.requeue(job)
            time.sleep(limit_s)
        time.sleep(ASK_AGAIN_S)
