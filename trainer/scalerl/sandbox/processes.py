"""Total usage of a program's processes, read from /proc outside the sandbox."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of this machine: `Process(pid=7, parent=1, cpu_s=0.2, resident_bytes=9 << 20, num_threads=1)`."""

    pid: int
    parent: int
    cpu_s: float
    """CPU seconds of the process and of the children it waited for."""
    resident_bytes: int
    num_threads: int


def all_processes() -> Iterator[Process]:
    """All current processes (proc(5), /proc/PID/stat)."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield Process(
            pid=int(name),
            parent=int(fields[1]),
            cpu_s=sum(map(int, fields[11:15])) / TICKS_PER_S,
            resident_bytes=int(fields[21]) * PAGE_BYTES,
            num_threads=int(fields[17]),
        )


def descendants(pid: int) -> list[list[Process]]:
    """Descendants of `pid`, one list per generation."""
    children: dict[int, list[Process]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process)
    generations = [children.get(pid, [])]
    while generations[-1]:
        generations.append([child for process in generations[-1] for child in children.get(process.pid, [])])
    return generations[:-1]


def shared_out_bytes(processes: list[Process]) -> int:
    """Resident memory with each shared page counted once (proc(5), Pss of smaps_rollup)."""
    return sum(map(_proportional_bytes, processes))


def _proportional_bytes(process: Process) -> int:
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"Pss:"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return 0
    except PermissionError:
        return process.resident_bytes
