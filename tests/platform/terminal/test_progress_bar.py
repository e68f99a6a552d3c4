"""A bar shows after two seconds, on a terminal, and leaves nothing behind."""

import io

import pytest
from rich.console import Console

from ablations.terminal.progress_bar import counted_off, progress_bar


def shown(seconds: list[float], *, is_terminal: bool = True) -> str:
    """What reaches a terminal of work whose runs are done at these times."""
    file, now = io.StringIO(), iter([0.0, *seconds])
    console = Console(file=file, force_terminal=is_terminal, width=80)
    with progress_bar("fitting curves", console=console, clock=lambda: next(now, 9.0)) as done:
        for count, _ in enumerate(seconds, start=1):
            done(count, 200)
    return file.getvalue()


def test_only_long_work_on_a_terminal_says_how_far_it_is():
    assert shown([0.5, 1.0, 1.9]) == ""
    assert shown([1.0, 2.5, 3.0], is_terminal=False) == ""
    text = shown([1.0, 2.5, 3.0])
    assert "fitting curves" in text
    assert "3/200" in text


def test_the_terminal_is_left_as_it_was_when_the_work_fails():
    file = io.StringIO()
    now = iter([0.0, 5.0])

    def work():
        console = Console(file=file, force_terminal=True, width=80)
        with progress_bar("fitting curves", console=console, clock=lambda: next(now)) as done:
            done(1, 2)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        work()
    hidden, visible = "\x1b[?25l", "\x1b[?25h"
    assert file.getvalue().rindex(visible) > file.getvalue().rindex(hidden)


def test_items_are_told_of_after_they_were_worked_on():
    seen: list[object] = []
    for item in counted_off("abc", lambda count, of: seen.append((count, of))):
        seen.append(item)
    assert seen == ["a", (1, 3), "b", (2, 3), "c", (3, 3)]
    assert list(counted_off("abc", None)) == ["a", "b", "c"]
