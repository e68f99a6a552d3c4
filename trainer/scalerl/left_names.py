"""Names in shared memory that killed processes leave behind, together with the memory they hold.

vLLM's processes communicate through named shared memory and remove the names on a normal exit, but the processes of a
unit are killed. Python's resource tracker cannot clean up: it is killed along with the unit it belongs to, and does not
know what libraries create.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
NAME_PREFIXES = ("psm_", "sem.", "vllm_")
"""Prefixes of Python's blocks and semaphores and of vLLM's blocks. Other libraries' names may belong to live processes.
"""
SILENT_TRACKER = "ignore::UserWarning:multiprocessing.resource_tracker"
"""PYTHONWARNINGS for a resource tracker, which would otherwise warn about each name that killed processes have left."""


def take_names_away(processes: Iterable[int]) -> None:
    """Remove the names of shared memory mapped by the processes; the last process to exit frees the memory.

    Call this before killing them: afterwards nothing shows which names were theirs.
    """
    mapped = {found for process in processes for found in _mapped(process)}
    for path in SHARED_MEMORY.glob("*"):
        with suppress(OSError):  # already gone, or another user's
            state = path.stat()
            if path.name.startswith(NAME_PREFIXES) and (state.st_dev, state.st_ino) in mapped:
                path.unlink()


def members_of_group(group: int) -> Iterator[int]:
    """Process ids of the group."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if int((process / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                yield int(process.name)


def _mapped(process: int) -> Iterator[tuple[int, int]]:
    """Device and inode of each mapped file. A semaphore is mapped under an earlier name, so names do not match."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            _, _, _, device, number, *_ = line.split(maxsplit=5)
            major, minor = (int(part, 16) for part in device.split(":"))
            yield os.makedev(major, minor), int(number)
