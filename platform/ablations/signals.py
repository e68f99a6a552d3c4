"""Handles signals differently while a block runs."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | signal.Handlers


@contextmanager
def handled(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Send these signals to `handler` inside the block; no effect outside the main thread, which gets no signals.

    >>> with handled(signal.default_int_handler, signal.SIGTERM): ...    # SIGTERM raises KeyboardInterrupt, as Ctrl-C
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
