"""Limits of a program, and its result."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from scalerl.frozen import Frozen, Unit

LimitName = Literal["wall", "cpu", "memory", "processes", "output", "files"]


class Limits(Frozen):
    """Limits of one program with all its processes: `Limits(wall_s=2.0, cpu_s=1.0)`."""

    wall_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 20.0
    """Seconds from the program's first instruction until all its processes are killed. Keep this well above `cpu_s`, so
    that a busy machine does not end programs that would have finished in time."""
    cpu_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 10.0
    """CPU seconds of all its processes together; `RLIMIT_CPU` applies it to each process, rounded up to a second."""
    memory_mb: Annotated[int, Field(ge=64), Unit("MiB")] = 512
    """MiB of address space per process (`RLIMIT_AS`), and of resident memory of all processes together."""
    processes: Annotated[int, Field(ge=1), Unit("processes")] = 32
    """Processes and threads alive at one time (`RLIMIT_NPROC`)."""
    output_kb: Annotated[int, Field(ge=1), Unit("KiB")] = 4096
    """KiB of standard output and of standard error each; a program that writes more is ended."""
    file_mb: Annotated[int, Field(ge=1), Unit("MiB")] = 16
    """MiB per file (`RLIMIT_FSIZE`), and of all files in its folder together."""
    files: Annotated[int, Field(ge=1), Unit("files")] = 1000
    """Files and folders that exist at one time."""


@dataclass(frozen=True, kw_only=True)
class ProgramEnd:
    """Result of one program: `ProgramEnd(stdout="4\\n", stderr="", exit_code=0, signal=None, limit=None, ...)`."""

    stdout: str
    """Output of up to `output_kb`; invalid UTF-8 is replaced."""
    stderr: str
    exit_code: int | None
    """None if a signal or a limit ended the program."""
    signal: int | None
    """Signal that ended the program; None if it exited or a limit ended it."""
    limit: LimitName | None
    """Limit that the program was killed for. Limits that the kernel enforces by refusal (a process, memory, the end of
    a file) are the program's own errors, and show in its exit code or signal."""
    wall_s: float
    """Seconds from the program's first instruction to the end of its last process."""
    cpu_s: float
    """CPU seconds of the program and of the children it waited for."""
