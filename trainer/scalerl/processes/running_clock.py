"""A clock that stands still while this process is stopped, as by SIGSTOP or with a suspended machine.

A thread checks the time every second. If it misses several checks and the process uses no processor time meanwhile,
the process was not running. One that only waits, or computes, is not stopped.
"""

import os
import threading
import time

SEEN_EVERY_S = 1.0
STOPPED_S = 5.0
"""Longest gap between two checks of the time before the process counts as stopped."""
IDLE_SHARE = 0.1
"""Processor time per second of such a gap below which the process was not running."""


class RunningClock:
    """Seconds in which this process was not stopped; only differences have a meaning."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process, self._stopped = 0, 0.0
        self._seen = self._worked = 0.0

    def __call__(self) -> float:
        with self._lock:
            if self._process != os.getpid():  # the first look, or a fork, which has no threads
                self._process, self._seen, self._worked = os.getpid(), time.monotonic(), time.process_time()
                threading.Thread(target=self._look, args=(self._process,), daemon=True).start()
            now, worked = time.monotonic(), time.process_time()
            passed = now - self._seen
            if passed > STOPPED_S and worked - self._worked < IDLE_SHARE * passed:
                self._stopped += passed
            self._seen, self._worked = now, worked
            return now - self._stopped

    def _look(self, process: int) -> None:
        while process == os.getpid():
            time.sleep(SEEN_EVERY_S)
            self()


running_s = RunningClock()
"""The clock of this process."""
