"""The line to the process of one unit: orders out and answers in, so that neither side holds up the other.

Two threads only move bytes. A unit is never kept waiting because the coordinator is in the middle of something, such as
an optimiser step, and the coordinator never because a unit does not read.
"""

import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import Body
from scalerl.processes.messages import Order, Reply, from_bytes, to_bytes


@dataclass(frozen=True, kw_only=True)
class Death:
    """The last word of a line: `Death(how="died (signal 9)", by_itself=False)`."""

    how: str
    by_itself: bool
    """The program ended itself; otherwise someone ended it, or the kernel for want of memory, or its node is gone."""


class UnitLine:
    """What is said to a process that has just been started, and what it says."""

    def __init__(self, unit: PlacedUnit, body: Body, inbox: "queue.SimpleQueue[UnitLine]") -> None:
        """Puts itself into `inbox` whenever `hear` has something."""
        self.unit, self.body = unit, body
        self.heard = time.monotonic()
        """When it last said something."""
        self._inbox, self._answers = inbox, queue.SimpleQueue[bytes | None]()
        self._orders: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended_for = ""
        self._connection: Connection | None = None
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, order: Order) -> None:
        """Give it an order, which is lost if the process is dead: its death is in the inbox then, or will be."""
        self._orders.put(to_bytes(order))

    def hear(self) -> Reply | Death:
        """The next of what it has said; its death comes last."""
        content = self._answers.get()
        return self._death() if content is None else from_bytes(content)

    def kill(self, why: str = "") -> None:
        """End the process and all that it has started; `why` is told as the manner of its death."""
        self._ended_for = self._ended_for or why
        self.body.kill()

    def close(self) -> None:
        """Wait for the end of a killed process."""
        self.body.bury()
        self._orders.put(None)
        if self._connection:
            self._connection.close()

    def _receive(self) -> None:
        with suppress(EOFError, OSError):
            self._connection = self.body.connect()
            threading.Thread(target=self._send, args=(self._connection,), daemon=True).start()
            while True:
                content = self._connection.recv_bytes()
                self.heard = time.monotonic()
                self._say(content)
        self._say(None)

    def _say(self, content: bytes | None) -> None:
        self._answers.put(content)
        self._inbox.put(self)

    def _send(self, connection: Connection) -> None:
        with suppress(OSError):  # the reader sees the same, and says it
            while (content := self._orders.get()) is not None:
                connection.send_bytes(content)

    def _death(self) -> Death:
        self._orders.put(None)
        code = self.body.bury()
        if code is None:
            how = "its process or its node is gone"
        else:
            how = f"signal {-code}" if code < 0 else f"exit code {code}, see the log"
        return Death(how=self._ended_for or f"died ({how})", by_itself=code is not None and code >= 0)
