"""A unit's end of its line: answers, and between them signs of life.

They tell a busy process from one that is stopped or whose node is gone.
"""

import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from scalerl.processes.messages import ProcessReply, to_bytes

SIGN_OF_LIFE = b""
SIGN_EVERY_S = 1.0


class Voice:
    """Sends answers; from construction on, a thread of its own sends a sign of life every few seconds."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self.said = time.monotonic()
        """Time of the last answer."""
        threading.Thread(target=self._live, daemon=True).start()

    def answer(self, answer: ProcessReply) -> None:
        """Send an answer."""
        with self._lock:
            self._connection.send_bytes(to_bytes(answer))
        self.said = time.monotonic()

    def _live(self) -> None:
        with suppress(OSError):  # the coordinator is gone, which the main thread notices
            while True:
                time.sleep(SIGN_EVERY_S)
                with self._lock:
                    self._connection.send_bytes(SIGN_OF_LIFE)
