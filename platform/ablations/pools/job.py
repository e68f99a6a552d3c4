"""The code inside a job: one training run on one node or several, with its output in the log of this attempt."""

import io
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablations.pools.code_version import code_version
from scalerl.cluster.placement import NodeOfRun
from scalerl.errors import Internal, ScaleRLError
from scalerl.process_variables import VISIBLE_GPUS
from scalerl.recipe.command import ProgramOwnLog
from scalerl.run.run_folder import RunFolder

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that limit the threads of libraries in a job."""


def train_here(path: Path, budget_gpu_hours: float, warm_starts: Path, visible: str | None) -> None:
    """Train the run in folder `path` with these GPUs of this machine, a list as in CUDA_VISIBLE_DEVICES.

    None leaves the variable as the sweep has it.
    """
    # The command that started this process blocks Ctrl-C in it; a block would reach the run's own programs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if visible is not None:
        os.environ[VISIBLE_GPUS] = visible
    train_run(path, budget_gpu_hours, warm_starts)


def train_run(path: Path, budget_gpu_hours: float, warm_starts: Path, place: NodeOfRun | None = None) -> None:
    """Train the run in folder `path`. Raises nothing: the run's status file and log record how it ended.

    If the run has several nodes, `place` is the first; the agents of the others learn when the run ends.
    """
    folder = RunFolder(path)
    attempt = folder.read_status().attempt + 1
    redirect_output(folder.log(attempt))
    from scalerl.run.train import train  # torch takes seconds to load, and only jobs need it

    try:
        train(
            path,
            budget_gpu_hours=budget_gpu_hours,
            warm_starts=warm_starts,
            code_version=code_version(),
            place=place,
            read_log=_rows_of_run,
        )
    except ScaleRLError as reason:
        if isinstance(reason, Internal):
            traceback.print_exc()  # its remedy asks for the log
        print(reason.advice, flush=True)
    except Exception:
        traceback.print_exc()
    if place:
        let_agents_go(path, place)


def _rows_of_run(path: Path, settings: ProgramOwnLog) -> list[dict[str, Any]]:
    from ablations.logs.rows_of_run import rows_of_run  # runs of our own trainer have no such log

    return rows_of_run(path, settings)


def attend_run(path: Path, place: NodeOfRun) -> bool:
    """Serve as a node's agent until the attempt ends, with output in the run's log of this attempt and node.

    Returns True if the first node ended the attempt; False if that node or its process is gone.
    """
    from scalerl.processes.agent import serve_node

    return serve_node(path, place, begin=lambda attempt: redirect_output(RunFolder(path).log(attempt, node=place.node)))


def let_agents_go(path: Path, place: NodeOfRun) -> None:
    """Tell agents that have not yet met their coordinator that the attempt has ended."""
    if place.nodes > 1:
        from scalerl.processes.meeting_file import write_ended

        write_ended(path, place.allocation)


def redirect_output(log: Path) -> None:
    """Append everything this process prints from now on to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(Output(number), encoding="utf-8", errors="backslashreplace", write_through=True)
        for number in (1, 2)
    )


class Output(io.RawIOBase):
    """A descriptor to print to; text that a full disk does not take is lost, since no message is worth a run."""

    def __init__(self, number: int) -> None:
        self._number, self.name = number, f"<{number}>"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, text: Any) -> int:
        """Write as much as the disk takes, and report all of it as written."""
        content = memoryview(text).cast("B")
        with suppress(OSError):
            rest = content
            while rest:
                rest = rest[os.write(self._number, rest) :]
        return len(content)
