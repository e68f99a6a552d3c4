"""Where generator processes are started, and what their trainer's process can do with one that has been started."""

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, SIGTERM, pthread_sigmask
from typing import Protocol

import torch.multiprocessing

from scalerl.generator.generator import Maker
from scalerl.processes.generator_process import Outfit, end_group, generate
from scalerl.weights.store import WeightStore

PROCESSES = torch.multiprocessing.get_context("spawn")
"""Not forked: torch's threads do not survive that. Not by a fork server: these are to be our own children."""
BURIAL_LIMIT_S = 5.0
"""A process whose connection has closed is gone within an instant; its exit code may come a little later."""


class Body(Protocol):
    """A generator process that has been started, here or elsewhere."""

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
    """Starts generator processes."""

    def start(self, number: int) -> Body:
        """A new process for generator `number`."""
        ...

    def close(self) -> None:
        """Nothing is started any more."""


class LocalLauncher:
    """Starts them on this machine, each with a pipe."""

    def __init__(self, maker: Maker, store: WeightStore, threads: int) -> None:
        """`maker` is called in each process, which has the store too; what it makes has version 0."""
        self._maker = pickle.dumps(maker)
        self._store, self._threads = store, threads

    def start(self, number: int) -> "LocalBody":
        """A child of this process."""
        ours, theirs = PROCESSES.Pipe()
        outfit = Outfit(connection=theirs, maker=self._maker, store=self._store, threads=self._threads)
        process = PROCESSES.Process(target=generate, args=(outfit,), name=f"generator {number}")
        with no_signals():
            process.start()
        theirs.close()
        return LocalBody(process, ours)

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
                self._process.kill()
                end_group(self.process_id)

    def bury(self) -> int | None:
        """Its exit code; what it has started itself is ended."""
        with self._lock:
            self._process.join(BURIAL_LIMIT_S)
            if not self._is_buried:
                end_group(self.process_id)
            self._is_buried = self._process.exitcode is not None
            return self._process.exitcode


@contextmanager
def no_signals() -> Iterator[None]:
    """Processes started inside never see Ctrl-C or SIGTERM: their trainer does, writes its checkpoint and ends them."""
    resource_tracker.ensure_running()  # the first start would do it, and leave the signals unblocked
    before = pthread_sigmask(SIG_BLOCK, {SIGINT, SIGTERM})
    try:
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)
