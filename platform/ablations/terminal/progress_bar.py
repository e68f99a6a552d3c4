"""A bar for work that takes long enough to wonder: on standard error of a terminal, gone when the work is done.

>>> with progress_bar("fitting curves") as done:
...     done(3, 200)
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

SILENT_S = 2.0
"""Work that takes less has no bar."""
Done = Callable[[int, int], None]
"""Told how many are done, and of how many."""
Item = TypeVar("Item")


@contextmanager
def progress_bar(
    text: str, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Done]:
    """What to call with how many are done, and of how many. `console` is standard error unless it is given."""
    console = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    begun, task, is_shown = clock(), bar.add_task(text), False

    def done(count: int, of: int) -> None:
        nonlocal is_shown
        bar.update(task, completed=count, total=of)
        if not is_shown and console.is_terminal and clock() - begun >= SILENT_S:
            is_shown = True
            bar.start()

    try:
        yield done
    finally:
        if is_shown:
            bar.stop()


def counted_off(items: Sequence[Item], done: Done | None) -> Iterator[Item]:
    """The items; `done` is told of each after it was worked on."""
    for count, item in enumerate(items, start=1):
        yield item
        if done is not None:
            done(count, len(items))


@contextmanager
def waiting(text: str, *, console: Console | None = None, silent_s: float = SILENT_S) -> Iterator[None]:
    """The same for work that cannot be counted: a moving sign beside the text, on a terminal alone."""
    console = console or Console(stderr=True)
    status = console.status(text)
    timer = Timer(silent_s, status.start)
    if console.is_terminal:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        status.stop()
