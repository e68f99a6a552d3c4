"""Finds the line that names a failed program's error, from the end of its output."""

import re
from collections.abc import Sequence

NUM_BEFORE, MOST_PRINTED = 4, 300
"""Without a traceback: the number of lines shown before the last line, and the character limits of the last line and of
those before it."""
TRACEBACK = re.compile(r"(\[rank\d+\]:\s?)?Traceback \(most recent call last\):\s*")
IGNORED = "Exception ignored "
OF_LAUNCHER = re.compile(
    r"torch\.distributed\.elastic\.|torch\.multiprocessing\.spawn\.|subprocess\.CalledProcessError"
)
"""Errors that a launcher raises because its program has failed."""


def error_of_program(text: str) -> str:
    """The line that ends the last traceback, to follow a reason: `: KeyError: 'lr'`.

    Without a traceback it is the last line, then the lines before it; without output it is empty.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    end = _end_of_traceback(lines)
    before = " | ".join(lines[-1 - NUM_BEFORE : -1])[-MOST_PRINTED:] if end is None else ""
    said = lines[-1 if end is None else end].strip()[:MOST_PRINTED]
    return f": {said}" + (f". Lines before it: {before}" if before else "")


def _end_of_traceback(lines: Sequence[str]) -> int | None:
    """Index of the line that ends the last traceback; None without one.

    Tracebacks that only say that another process has failed, or that an exception was ignored, are passed over.
    """
    for start in reversed(range(len(lines))):
        found = TRACEBACK.fullmatch(lines[start])
        if found and not (start and lines[start - 1].startswith(IGNORED)):
            rank = found[1] or ""  # lines of several ranks come in any order
            after = [place for place in range(start + 1, len(lines)) if lines[place].startswith(rank)]
            end = next((place for place in after if not lines[place].removeprefix(rank).startswith((" ", "\t"))), None)
            if end is not None and not OF_LAUNCHER.match(lines[end].removeprefix(rank)):
                return end
    return None
