"""Handles signals differently while a block runs."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | signal.Handlers
TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `kill`, and the end of a terminal."""


@contextmanager
def handled(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Send these signals to `handler` inside the block, except those that are ignored, as `nohup` does with SIGHUP.

    No effect outside the main thread, which gets no signals.

    >>> with handled(signal.default_int_handler, signal.SIGTERM): ...    # SIGTERM raises KeyboardInterrupt, as Ctrl-C
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def interrupts_wait(*hidden: signal.Signals) -> Iterator[None]:
    """Delay the signals `TO_STOP` until the block is done; processes started in it never get the `hidden` ones of them,
    which a terminal sends to them too."""
    came: list[int] = []
    try:
        with handled(lambda number, _: came.append(number), *TO_STOP):
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, hidden)
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        if came:
            signal.raise_signal(came[0])
