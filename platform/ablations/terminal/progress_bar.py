"""A progress bar for slow work: on standard error, only on a terminal, removed when the work is done.

>>> with progress_bar("fitting curves") as done:
...     done(3, 200)
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

SILENT_S = 2.0
"""Seconds of work below which no bar is shown."""
Done = Callable[[int, int], None]
"""Called with the number of items done and the total."""
Item = TypeVar("Item")


@contextmanager
def progress_bar(
    text: str, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Done]:
    """Yield a function to call with the number of items done and the total. `console` defaults to standard error."""
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
    """Yield the items; calls `done` after the work on each."""
    for count, item in enumerate(items, start=1):
        yield item
        if done is not None:
            done(count, len(items))
