"""Sends deadly signals to its parents, to every process it may, and to its group."""

import contextlib
import os
import signal

for pid in (1, os.getppid(), -1, 0):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with contextlib.suppress(OSError, KeyboardInterrupt):
            os.kill(pid, number)
