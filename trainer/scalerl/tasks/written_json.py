"""JSON whose numbers and lists keep their text, so that an answer is taken as it is written.

>>> decoded('{"answer": 0.10}')["answer"].written
'0.10'
"""

import json
import re
from functools import reduce
from typing import Any

import numpy as np

MOST_DIGITS = 4000
"""Maximum number of digits converted at a time; Python allows fewer than 4300."""
_ALMOST_A_NUMBER = re.compile(r"-?(?:0\d+(?:\.\d*)?|\d+\.|\.\d+)(?:[eE][+-]?\d*)?|-?[\d.]+[eE][+-]?")


class WrittenFloat(float):
    """A float with its original text: `written_float("1e22").written == "1e22"`."""

    written: str


class WrittenInteger(int):
    """An integer with more digits than `str` allows."""

    written: str


class WrittenList(list[Any]):
    """A list of numbers with its original text: `decoded_cell("[-2, 7]").written == "[-2, 7]"`."""

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


def decoded(text: str) -> Any:
    """Value of a JSON text; raises ValueError with what is wrong with it."""
    try:
        return JSON.decode(text)
    except RecursionError:
        raise ValueError("not readable JSON: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from None


def decoded_cell(text: str | bytes) -> Any:
    """Value that a cell of a JSON column holds; raises ValueError for a cell that is not JSON.

    `datasets` stores a text that its parser takes for JSON as it is. So a list of numbers keeps its text, which may be
    the interval [-2, 7], and 007 or -.5, which no other parser takes for a number, is that text.
    """
    text = text.decode() if isinstance(text, bytes) else text
    if _ALMOST_A_NUMBER.fullmatch(text):
        return text
    value = decoded(text)
    if isinstance(value, list) and _are_numbers(value):
        value = WrittenList(value)
        value.written = text
    return value


def _are_numbers(values: list[Any]) -> bool:
    return bool(values) and all(
        _are_numbers(one) if isinstance(one, list) else isinstance(one, int | float) and not isinstance(one, bool)
        for one in values
    )


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object from its pairs; raises ValueError for a repeated name, of which JSON would silently keep the last."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return values


JSON = json.JSONDecoder(object_pairs_hook=_unlike, parse_float=written_float, parse_int=written_integer)
