"""Ends vLLM's processes together, since none of them can continue without the others."""

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
    """A thread that waits for one of these processes to end, and then kills the others.

    Otherwise they would wait for the dead one: vLLM allows nine seconds before it reports a dead worker.
    """

    def __init__(self, process_ids: Sequence[int]) -> None:
        self.broken: Future[None] = Future()
        """Done as soon as a process ends before `part` is called."""
        self._numbers = process_ids
        # A process number may have been reused by the time of the kill.
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
        """Allow each process to end on its own from now on."""
        os.write(self._mouth, b"\0")
        self._thread.join()

    def end(self) -> None:
        """Kill the remaining processes and wait for them to end."""
        self._kill()
        for process in self._processes:
            wait([process], GONE_LIMIT_S)
        for descriptor in (*self._processes, self._ear, self._mouth):
            os.close(descriptor)
        self._processes = []
