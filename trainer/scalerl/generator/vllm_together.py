"""vLLM's processes end together: none of them can go on without the others."""

import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import wait

from scalerl.left_names import take_names_away

GONE_LIMIT_S = 5.0


class Together:
    """A thread that waits for the end of one of these processes and kills the others at once.

    They wait for the one that is gone: vLLM gives them nine seconds to end before it says that a worker has died.
    """

    def __init__(self, process_ids: Sequence[int]) -> None:
        self.broken: Future[None] = Future()
        """Done as soon as one of them has ended before `part`."""
        self._numbers = process_ids
        # A number alone may be another's by the time it is to be killed.
        self._processes = [os.pidfd_open(number) for number in process_ids]
        self._ear, self._mouth = os.pipe()
        self._thread = threading.Thread(target=self._watch, name="vLLM's processes", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        if self._ear not in wait([*self._processes, self._ear]):
            take_names_away(self._numbers)
            self._kill()
            self.broken.set_result(None)

    def _kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)

    def part(self) -> None:
        """From now on each may end in its own time."""
        os.write(self._mouth, b"\0")
        self._thread.join()

    def end(self) -> None:
        """Kill those that are left, and wait for their end."""
        self._kill()
        for process in self._processes:
            wait([process], GONE_LIMIT_S)
        for descriptor in (*self._processes, self._ear, self._mouth):
            os.close(descriptor)
        self._processes = []
