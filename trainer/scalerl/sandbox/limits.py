"""What a program may use, and how it ended."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from scalerl.frozen import Frozen, Unit

LimitName = Literal["wall", "cpu", "memory", "processes", "output", "files"]


class Limits(Frozen):
    """What one program, with all processes it starts, may use: `Limits(wall_s=2.0, cpu_s=1.0)`."""

    wall_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 20.0
    """Seconds from the program's first instruction until everything it started is killed. Well above `cpu_s`, so that
    a busy machine does not end programs that would have been done in time."""
    cpu_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 10.0
    """Processor seconds of all its processes together; `RLIMIT_CPU` holds each one to this, rounded up to a second."""
    memory_mb: Annotated[int, Field(ge=64), Unit("MiB")] = 512
    """MiB of address space of each process (`RLIMIT_AS`), and of resident memory of all of them together."""
    processes: Annotated[int, Field(ge=1), Unit("processes")] = 32
    """Processes and threads alive at one time (`RLIMIT_NPROC`)."""
    output_kb: Annotated[int, Field(ge=1), Unit("KiB")] = 4096
    """KiB kept of standard output and of standard error, each; the program ends when it writes more."""
    file_mb: Annotated[int, Field(ge=1), Unit("MiB")] = 16
    """MiB of one file (`RLIMIT_FSIZE`), and of all files in its folder together."""
    files: Annotated[int, Field(ge=1), Unit("files")] = 1000
    """Files and folders it may have at one time."""


@dataclass(frozen=True, kw_only=True)
class ProgramEnd:
    """The end of one program: `ProgramEnd(stdout="4\\n", stderr="", exit_code=0, signal=None, limit=None, ...)`."""

    stdout: str
    """What it wrote, up to `output_kb`; bytes that are no UTF-8 are replaced."""
    stderr: str
    exit_code: int | None
    """None when a signal or a limit ended it."""
    signal: int | None
    """The signal that ended it, None when it exited or a limit ended it."""
    limit: LimitName | None
    """The limit it ran into and was killed for. A limit the kernel holds by refusing (a process or memory not given,
    a file that ends early) is the program's own error, and shows as its exit code or signal."""
    wall_s: float
    """From the program's first instruction to the end of its last process."""
    cpu_s: float
    """Processor seconds of the program and of those of its children it waited for."""

    @property
    def ok(self) -> bool:
        """It exited by itself with code 0."""
        return self.exit_code == 0
