"""A program on several ranks: one process each, none of which outlives the call."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

LIMIT_S = 300.0


def run_ranks(program: Path, world: int, *arguments: str) -> str:
    """What the first rank prints; `program` is given the rank and `world` before its arguments. All must end well."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with ExitStack() as stack:
        logs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(world)]
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(end, processes)
        for rank, log in enumerate(logs):
            command = [sys.executable, str(program), str(rank), str(world), *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
        for process in processes:
            process.wait(LIMIT_S)
        said = []
        for log in logs:
            log.seek(0)
            said.append(log.read())
        assert [process.returncode for process in processes] == [0] * world, "\n".join(text[-3000:] for text in said)
        return said[0]


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill those that still run."""
    for process in processes:
        process.kill()
        process.wait()
