"""The end of a text file, such as a log."""

from pathlib import Path

TAIL_BYTES = 16384
"""Bytes read from the end of a file."""


def tail(path: Path, num_lines: int | None = None) -> list[str]:
    """The last `num_lines` (default: all) non-blank lines in the last 16 KiB of a text file; [] if it is unreadable."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if line.strip()][-(num_lines or 0) :]
