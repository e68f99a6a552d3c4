"""Names in shared memory that a killed process leaves behind, with the memory that they hold.

vLLM's processes talk through memory that has names. They take a name away when they end in order; a unit's processes
are killed. Python's resource tracker would do it for them, but is killed with them where it belongs to the unit, and
knows nothing of what libraries create.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
NAME_PREFIXES = ("psm_", "sem.", "vllm_")
"""Python's blocks and semaphores, vLLM's blocks. Other libraries' may belong to processes that live on."""
SILENT_TRACKER = "ignore::UserWarning:multiprocessing.resource_tracker"
"""In PYTHONWARNINGS where a resource tracker starts: it would warn of each name that killed processes have left."""


def take_names_away(processes: Iterable[int]) -> None:
    """Of the shared memory that they have mapped; the memory goes with the last of them.

    To be called before they are killed: nobody knows afterwards what was theirs.
    """
    mapped = {found for process in processes for found in _mapped(process)}
    for path in SHARED_MEMORY.glob("*"):
        with suppress(OSError):  # gone, or another user's
            state = path.stat()
            if path.name.startswith(NAME_PREFIXES) and (state.st_dev, state.st_ino) in mapped:
                path.unlink()


def members_of_group(group: int) -> Iterator[int]:
    """Process ids."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if int((process / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                yield int(process.name)


def _mapped(process: int) -> Iterator[tuple[int, int]]:
    """Device and number of files: a semaphore is mapped under a name that it had before the one it has."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            _, _, _, device, number, *_ = line.split(maxsplit=5)
            major, minor = (int(part, 16) for part in device.split(":"))
            yield os.makedev(major, minor), int(number)
