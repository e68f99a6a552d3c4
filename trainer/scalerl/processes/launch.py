"""The units of a run, the launcher that starts them as processes, and the operations on a started process."""

import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import current_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Protocol

import torch
import torch.multiprocessing

from scalerl.cluster.placement import PlacedUnit, place_run
from scalerl.errors import Rejected
from scalerl.left_names import SILENT_TRACKER, members_of_group, take_names_away
from scalerl.model.device import device_of
from scalerl.process_variables import VISIBLE_GPUS, environment_with
from scalerl.recipe import ResolvedRecipe
from scalerl.signals import signals_to_all_blocked
from scalerl.warden import warden

Work = Callable[[Connection], None]
"""Function executed by a unit's process, given its connection to the coordinator; can be pickled."""
SPAWN = torch.multiprocessing.get_context("spawn")
"""Start method: torch's threads do not survive a fork, and a fork server's processes would not be our own children."""
BURIAL_LIMIT_S = 5.0
"""Time limit for an exit code: a process whose connection has closed ends at once, but its code may arrive later."""


def units_of(recipe: ResolvedRecipe, gpus_of_nodes: Sequence[int]) -> tuple[PlacedUnit, ...]:
    """All units of the run, on nodes with this many GPUs each; a run on CPUs uses no GPUs. See `place_run`."""
    return place_run(recipe, [0] * len(gpus_of_nodes) if device_of(recipe).type == "cpu" else gpus_of_nodes)


def local_units(recipe: ResolvedRecipe) -> tuple[PlacedUnit, ...]:
    """The units of a run on this machine alone; surplus GPUs are left free.

    On the virtual clock these are the learner's ranks only. Rejected if there are GPUs, but fewer than ranks.
    """
    gpus = 0 if device_of(recipe).type == "cpu" else min(torch.cuda.device_count(), recipe.most_gpus)
    if recipe.cluster.type == "wall":
        return units_of(recipe, [gpus])
    ranks = recipe.learner.ranks
    if 0 < gpus < ranks:
        raise Rejected(f"learner.ranks: {ranks} ranks need a GPU each, and this machine has {gpus}; use fewer ranks")
    return tuple(PlacedUnit(role="trainer", index=rank, node=0, devices=(rank,)) for rank in range(ranks))


class Body(Protocol):
    """A started process, here or elsewhere."""

    process_id: int
    """Process id on its own machine; 0 while unknown."""

    def connect(self) -> Connection:
        """Return the connection once there is one; EOFError if the process ends first."""
        ...

    def kill(self) -> None:
        """Kill the process and all that it has started."""

    def bury(self) -> int | None:
        """Exit code, negative for a signal; None if it does not become known within a short while."""
        ...


class Launcher(Protocol):
    """Starts the processes of units."""

    def start(self, unit: PlacedUnit, work: bytes) -> Body:
        """Start a process that executes `work`, a pickled Work, and sees only the unit's devices."""
        ...

    def reaches(self, node: int) -> bool:
        """True if a process can be started on the node."""
        ...

    def node_name(self, node: int) -> str:
        """Name of the node, for messages."""
        ...


class LocalLauncher(Launcher):
    """Starts units on this machine, each with a pipe; treats all units as being on this node."""

    def start(self, unit: PlacedUnit, work: bytes) -> "LocalBody":
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=begin, args=(theirs, unit.devices, work), name=unit.name)
        start_tracker()
        with signals_to_all_blocked():  # the coordinator saves, and then ends its processes
            process.start()
        warden.guard(process.pid or 0)
        theirs.close()
        return LocalBody(process, ours)

    def reaches(self, node: int) -> bool:
        return True

    def node_name(self, node: int) -> str:
        return socket.gethostname()


class LocalBody(Body):
    """A child of this process."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self._process, self._connection, self.process_id = process, connection, process.pid or 0
        self._is_buried = False
        self._lock = threading.Lock()

    def connect(self) -> Connection:
        return self._connection

    def kill(self) -> None:
        """Kill the child at once; does nothing after `bury`, because its id may then be another's."""
        with self._lock:
            if not self._is_buried:
                end_group(self.process_id)
                self._process.kill()

    def bury(self) -> int | None:
        """Return the exit code, after ending whatever the child has started."""
        with self._lock:
            self._process.join(BURIAL_LIMIT_S)
            if not self._is_buried:
                end_group(self.process_id)
            if self._process.exitcode is not None and not self._is_buried:
                self._is_buried = True
                warden.release(self.process_id)
            return self._process.exitcode


def begin(connection: Connection, devices: tuple[int, ...], work: bytes) -> None:
    """Execute a started process's work until the coordinator closes the connection or dies.

    Whatever the process starts shares its process group, which its starter ends. Devices are hidden before `work` is
    unpickled, because tensors in it could initialise CUDA.
    """
    os.setpgid(0, 0)
    os.environ[VISIBLE_GPUS] = visible_devices(devices, os.environ.get(VISIBLE_GPUS))
    try:
        pickle.loads(work)(connection)
    except Exception as error:
        # Nothing here needs an orderly exit. Taking torch down takes ten seconds on a busy machine, and a death is
        # only noticed once the process has ended.
        if isinstance(error, EOFError | OSError) and is_closed(connection):
            end_group(os.getpid())
        with suppress(OSError):  # nobody reads it
            sys.stderr.write(f"{current_process().name}:\n{traceback.format_exc()}")
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(1)


def is_closed(connection: Connection) -> bool:
    """True if the other end is gone; its earlier messages are dropped."""
    try:
        while connection.poll():
            connection.recv_bytes()
    except (EOFError, OSError):
        return True
    return False


def visible_devices(devices: tuple[int, ...], outer: str | None) -> str:
    """`CUDA_VISIBLE_DEVICES` for a process with these devices, given as indices into those visible here.

    >>> visible((0, 1), "4,5,6")
    "4,5"
    """
    names = None if outer is None else outer.split(",")
    known = [device for device in devices if names is None or device < len(names)]
    return ",".join(str(device) if names is None else names[device] for device in known)


def end_group(process_id: int) -> None:
    """Kill the process group led by a started process and remove its shared memory, if any is left."""
    take_names_away(members_of_group(process_id))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGKILL)


def start_tracker() -> None:
    """Start Python's resource tracker; otherwise the first process would, and leave some signals unblocked."""
    warnings = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), SILENT_TRACKER)))
    with signals_to_all_blocked(), environment_with({"PYTHONWARNINGS": warnings}):
        resource_tracker.ensure_running()
