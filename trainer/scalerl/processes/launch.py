"""Where the units of a run are started as processes, and what the coordinator can do with one that has been started."""

import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import current_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, SIGTERM, SIGUSR2, pthread_sigmask
from typing import Protocol

import torch.multiprocessing

from scalerl.cluster.placement import PlacedUnit
from scalerl.environment import environment_with
from scalerl.left_names import SILENT_TRACKER, members_of_group, take_names_away

Work = Callable[[Connection], None]
"""What a unit's process executes, with its connection to the coordinator; it can be pickled."""
SPAWN = torch.multiprocessing.get_context("spawn")
"""Not forked: torch's threads do not survive that. Not by a fork server: these are to be our own children."""
BURIAL_LIMIT_S = 5.0
"""A process whose connection has closed is gone within an instant; its exit code may come a little later."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


class Body(Protocol):
    """A process that has been started, here or elsewhere."""

    @property
    def process_id(self) -> int:
        """Of the process, on its own machine; 0 while it is not known."""
        ...

    def connect(self) -> Connection:
        """The connection to it, as soon as there is one; EOFError where the process ends before that."""
        ...

    def kill(self) -> None:
        """End it and all that it has started."""

    def bury(self) -> int | None:
        """Its exit code, negative for a signal; None where that is not known within a short while."""
        ...


class Launcher(Protocol):
    """Starts the processes of units."""

    def start(self, unit: PlacedUnit, work: bytes) -> Body:
        """A new process that executes `work`, a pickled Work, and sees the devices of the unit alone."""
        ...

    def reaches(self, unit: PlacedUnit) -> bool:
        """Whether a process can be started on the unit's node."""
        ...

    def node_name(self, unit: PlacedUnit) -> str:
        """What people call the unit's node."""
        ...

    def close(self) -> None:
        """Nothing is started any more."""


class LocalLauncher:
    """Starts them on this machine, each with a pipe; all units are taken to be on its node."""

    def start(self, unit: PlacedUnit, work: bytes) -> "LocalBody":
        """A child of this process."""
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=begin, args=(theirs, unit.devices, work), name=unit.name)
        with no_signals():
            process.start()
        theirs.close()
        return LocalBody(process, ours)

    def reaches(self, unit: PlacedUnit) -> bool:
        """Always."""
        return True

    def node_name(self, unit: PlacedUnit) -> str:
        """That of this machine."""
        return socket.gethostname()

    def close(self) -> None:
        """Nothing to do."""


class LocalBody:
    """A child of this process."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self._process, self._connection = process, connection
        self._is_buried = False
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int:
        """Of the child."""
        return self._process.pid or 0

    def connect(self) -> Connection:
        """It was there before the process was."""
        return self._connection

    def kill(self) -> None:
        """At once; after its burial nothing happens, for its number may be another's."""
        with self._lock:
            if not self._is_buried:
                end_group(self.process_id)
                self._process.kill()

    def bury(self) -> int | None:
        """Its exit code; what it has started itself is ended."""
        with self._lock:
            self._process.join(BURIAL_LIMIT_S)
            if not self._is_buried:
                end_group(self.process_id)
            self._is_buried = self._process.exitcode is not None
            return self._process.exitcode


def begin(connection: Connection, devices: tuple[int, ...], work: bytes) -> None:
    """What a started process executes: its work, until the coordinator closes the connection or dies.

    What the process starts is in a process group with it; whoever has started it ends the group. Devices are hidden
    before `work` is unpickled, since tensors in it could begin CUDA.
    """
    os.setpgid(0, 0)
    os.environ[VISIBLE] = visible_devices(devices, os.environ.get(VISIBLE))
    try:
        pickle.loads(work)(connection)
    except Exception as error:
        # Nothing here needs an orderly end, taking torch down takes a busy machine ten seconds, and a death is not
        # noticed before the process has ended.
        if isinstance(error, EOFError | OSError) and is_closed(connection):
            end_group(os.getpid())
        with suppress(OSError):  # nobody reads it
            sys.stderr.write(f"{current_process().name}:\n{traceback.format_exc()}")
            sys.stderr.flush()
            sys.stdout.flush()
        os._exit(1)


def is_closed(connection: Connection) -> bool:
    """Whether the other end is gone; what it has said before is dropped."""
    try:
        while connection.poll():
            connection.recv_bytes()
    except (EOFError, OSError):
        return True
    return False


def visible_devices(devices: tuple[int, ...], outer: str | None) -> str:
    """What `CUDA_VISIBLE_DEVICES` says to a process of these devices, counted among those that are visible here.

    >>> visible((0, 1), "4,5,6")
    "4,5"
    """
    names = None if outer is None else outer.split(",")
    known = [device for device in devices if names is None or device < len(names)]
    return ",".join(str(device) if names is None else names[device] for device in known)


def end_group(process_id: int) -> None:
    """Kill the process group that a started process leads, if anything is left of it and of its shared memory."""
    take_names_away(members_of_group(process_id))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGKILL)


@contextmanager
def no_signals() -> Iterator[None]:
    """Processes started inside never see Ctrl-C or SIGTERM: the coordinator does, writes its checkpoint, ends them."""
    # Slurm's signal before a time limit reaches all processes of a job.
    before = pthread_sigmask(SIG_BLOCK, {SIGUSR2})
    try:
        warnings = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), SILENT_TRACKER)))
        with environment_with({"PYTHONWARNINGS": warnings}):
            resource_tracker.ensure_running()  # the first start would do it, and leave the other signals unblocked
        pthread_sigmask(SIG_BLOCK, {SIGINT, SIGTERM})
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)
