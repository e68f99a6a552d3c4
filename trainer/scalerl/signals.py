"""Signals that terminals, `timeout` and Slurm send to all processes of a run, but that only its main process may act
on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

TO_ALL_PROCESSES = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def signals_to_all_blocked() -> Iterator[None]:
    """Block these signals in this thread, and permanently in processes started in the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL_PROCESSES)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
