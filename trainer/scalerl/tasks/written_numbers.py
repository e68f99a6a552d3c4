"""Numbers of a file with the text that they were written as: `0.10`, `1e22`, integers of any length."""

from functools import reduce

import numpy as np

MOST_DIGITS = 4000
"""Python converts fewer than 4300 digits at a time."""


class WrittenFloat(float):
    """A float that knows its text: `written_float("1e22").written == "1e22"`."""

    written: str


class WrittenInteger(int):
    """An integer with more digits than `str` gives."""

    written: str


def written_float(text: str) -> WrittenFloat:
    """The number that is written so."""
    number = WrittenFloat(text)
    number.written = text
    return number


def written_integer(text: str) -> int:
    """The integer that is written so, exact at any length."""
    if len(text) <= MOST_DIGITS:
        return int(text)
    digits = text.lstrip("-")
    parts = [digits[start : start + MOST_DIGITS] for start in range(0, len(digits), MOST_DIGITS)]
    value = reduce(lambda high, part: high * 10 ** len(part) + int(part), parts, 0)
    number = WrittenInteger(-value if text.startswith("-") else value)
    number.written = text
    return number


def single(value: float) -> float:
    """A number that was stored in 32 or 16 bits, in its shortest text: 0.1, not 0.10000000149."""
    return written_float(str(np.float32(value))) if np.isfinite(value) else value
