"""Numbers in a file that keep their original text: `0.10`, `1e22`, integers of any length."""

from functools import reduce

import numpy as np

MOST_DIGITS = 4000
"""Most digits converted at a time; Python allows fewer than 4300."""


class WrittenFloat(float):
    """A float with its original text: `written_float("1e22").written == "1e22"`."""

    written: str


class WrittenInteger(int):
    """An integer with more digits than `str` allows."""

    written: str


def written_float(text: str) -> WrittenFloat:
    """Float with this text."""
    number = WrittenFloat(text)
    number.written = text
    return number


def written_integer(text: str) -> int:
    """Integer with this text, exact at any length."""
    if len(text) <= MOST_DIGITS:
        return int(text)
    digits = text.lstrip("-")
    parts = [digits[start : start + MOST_DIGITS] for start in range(0, len(digits), MOST_DIGITS)]
    value = reduce(lambda high, part: high * 10 ** len(part) + int(part), parts, 0)
    number = WrittenInteger(-value if text.startswith("-") else value)
    number.written = text
    return number


def single(value: float) -> float:
    """A number stored in 32 or 16 bits, in its shortest text: 0.1, not 0.10000000149."""
    return written_float(str(np.float32(value))) if np.isfinite(value) else value
