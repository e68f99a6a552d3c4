"""The line to the process of one unit: orders out, answers in, without either side blocking the other.

Two threads only move bytes. A unit never waits while the coordinator is busy, for example with an optimiser step, and
the coordinator never waits for a unit to read.
"""

import queue
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import Body
from scalerl.processes.messages import Order, ProcessReply, from_bytes, to_bytes
from scalerl.processes.running_clock import running_s
from scalerl.processes.voice import SIGN_OF_LIFE


@dataclass(frozen=True, kw_only=True)
class Death:
    """Last message of a line: `Death(how="died (signal 9)", by_itself=False)`."""

    how: str
    by_itself: bool
    """True if the program ended itself; False if it was killed, by someone or for lack of memory, or its node died."""


class UnitLine:
    """Orders to a process that has just been started, and its answers."""

    def __init__(self, unit: PlacedUnit, body: Body, inbox: "queue.SimpleQueue[UnitLine]") -> None:
        """Put this line into `inbox` whenever `hear` has a message."""
        self.unit, self.body = unit, body
        self.heard = self.said = running_s()
        """Times of the last sign of life, which any message is, and of the last message."""
        self.has_begun = False
        """True after the first message; from then on, signs of life are due."""
        self._inbox, self._answers = inbox, queue.SimpleQueue[bytes | None]()
        self._orders: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended_for = ""
        self._connection: Connection | None = None
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, order: Order) -> None:
        """Send an order; a dead process never receives it, and its death is, or soon will be, in the inbox."""
        self._orders.put(to_bytes(order))

    def hear(self) -> ProcessReply | Death:
        """Return the next message; the death comes last."""
        content = self._answers.get()
        return self._death() if content is None else from_bytes(content)

    def kill(self, why: str = "") -> None:
        """Kill the process and all that it has started; `why` becomes the reported cause of death."""
        self._ended_for = self._ended_for or why
        self.body.kill()

    def close(self) -> None:
        """Wait for a killed process to end."""
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
                self.heard = running_s()
                if content != SIGN_OF_LIFE:
                    self.said, self.has_begun = self.heard, True
                    self._say(content)
        self._say(None)

    def _say(self, content: bytes | None) -> None:
        self._answers.put(content)
        self._inbox.put(self)

    def _send(self, connection: Connection) -> None:
        with suppress(OSError):  # the reader sees the same error, and reports it
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
