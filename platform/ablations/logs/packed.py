"""Stores the values of a log's column compactly: a float takes 8 bytes, and a text at most as many as in its file.

Every value comes back as it was given, with two exceptions, which no curve can be made of: of a text of more than
LONGEST_TEXT characters the beginning and a checksum are kept, and of a list its text.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Protocol

import numpy as np

LONGEST_TEXT = 200
MOST_EXACT = 2**53
"""Whole numbers up to this one are exact as floats."""
IS_MISSING, IS_FLOAT, IS_WHOLE, IS_TRUTH = range(4)
KIND_OF = {NoneType: IS_MISSING, float: IS_FLOAT, int: IS_WHOLE, bool: IS_TRUTH}
NUMBER_SIGNS = b"0123456789.-+eE,"
"""Characters that fit two to a byte; the last one separates the texts."""
PLACE_OF_SIGN = np.full(256, 255, dtype=np.uint8)
PLACE_OF_SIGN[[*NUMBER_SIGNS]] = np.arange(len(NUMBER_SIGNS))
BETWEEN = "\0"


class TextOf(str):
    """The text of a value that is neither a number nor a text, such as a list."""


class Packed(Protocol):
    """Values of a column in the order of their rows."""

    def __iter__(self) -> Iterator[Any]: ...

    def different(self) -> Iterable[Any]:
        """The values, without repeats where that is cheap."""
        ...

    def present(self, has_no_value: Callable[[Any], bool]) -> np.ndarray:
        """True for the values that are neither missing nor NaN, bool (size,); for a text, `has_no_value` decides."""
        ...

    def numbers(self, number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
        """The values as float64 (size,), NaN where one is missing, and True for those that were logged as NaN.

        `number_of` gives the number of a text, None for a missing one; what it raises is passed on.
        """
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Numbers:
    """Plain numbers: `Numbers(array, IS_FLOAT)`, or with a kind for each, as in KIND_OF."""

    array: np.ndarray
    kinds: np.ndarray | int

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.kinds, int):
            return iter(self.array.tolist())
        made = (lambda _: None, float, int, bool)
        return (made[kind](value) for kind, value in zip(self.kinds.tolist(), self.array.tolist(), strict=True))

    def different(self) -> Iterable[Any]:
        return self

    def present(self, has_no_value: Callable[[Any], bool]) -> np.ndarray:
        del has_no_value
        return ~np.isnan(self.array)

    def numbers(self, number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
        del number_of
        found = self.array.astype(float)
        return found, np.isnan(found) & (self.kinds != IS_MISSING)


@dataclass(frozen=True, eq=False, slots=True)
class Words:
    """Repeating values, stored as indices into the distinct ones."""

    words: tuple[Any, ...]
    places: np.ndarray

    def __iter__(self) -> Iterator[Any]:
        return (self.words[place] for place in self.places.tolist())

    def different(self) -> Iterable[Any]:
        return self.words

    def present(self, has_no_value: Callable[[Any], bool]) -> np.ndarray:
        return _present(self.words, has_no_value)[self.places]

    def numbers(self, number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
        found, is_nan = _numbers(self.words, number_of)
        return found[self.places], is_nan[self.places]


@dataclass(frozen=True, eq=False, slots=True)
class Texts:
    """Texts one after another: as UTF-8, or, for texts of numbers, with two characters in a byte."""

    content: bytes
    size: int
    """Characters of numbers; 0 for UTF-8."""

    def __iter__(self) -> Iterator[str]:
        if not self.size:
            return iter(self.content.decode("utf-8", "surrogatepass").split(BETWEEN))
        pairs = np.frombuffer(self.content, dtype=np.uint8)
        places = np.stack([pairs >> 4, pairs & 15], axis=1).reshape(-1)[: self.size]
        return iter(np.frombuffer(NUMBER_SIGNS, dtype=np.uint8)[places].tobytes().decode().split(","))

    def different(self) -> Iterable[Any]:
        return self

    def present(self, has_no_value: Callable[[Any], bool]) -> np.ndarray:
        return _present(self, has_no_value)

    def numbers(self, number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
        return _numbers(self, number_of)


@dataclass(frozen=True, eq=False, slots=True)
class Objects:
    """Any other values, stored unchanged."""

    values: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def different(self) -> Iterable[Any]:
        return self

    def present(self, has_no_value: Callable[[Any], bool]) -> np.ndarray:
        return _present(self.values, has_no_value)

    def numbers(self, number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
        return _numbers(self.values, number_of)


def pack(values: Sequence[Any]) -> Packed:
    """The values, stored compactly."""
    types = {*map(type, values)}
    if types == {float}:
        return Numbers(np.array(values), IS_FLOAT)
    if types <= KIND_OF.keys() and all(-MOST_EXACT <= value <= MOST_EXACT for value in values if type(value) is int):
        if types == {int}:
            return Numbers(np.array(values, dtype=np.int64), IS_WHOLE)
        kinds = np.array([KIND_OF[type(value)] for value in values], dtype=np.uint8)
        return Numbers(np.array([np.nan if value is None else value for value in values], dtype=float), kinds)
    short = [*map(_short, values)]
    if types <= {str, NoneType}:
        places: dict[Any, int] = {}
        at = [places.setdefault(value, len(places)) for value in short]
        if 2 * len(places) <= len(short):
            return Words(tuple(places), np.array(at, dtype=np.uint16 if len(places) < 2**16 else np.uint32))
        if types == {str}:
            return _texts(short) or Objects(tuple(short))
    return Objects(tuple(short))


def _texts(texts: Sequence[str]) -> Texts | None:
    """The texts one after the other; None if one contains the sign that would part them."""
    joined = ",".join(texts)
    if joined.isascii() and joined.count(",") == len(texts) - 1:
        places = PLACE_OF_SIGN[np.frombuffer(joined.encode(), dtype=np.uint8)]
        if places.size and places.max() < len(NUMBER_SIGNS):
            padded = np.append(places, np.zeros(places.size % 2, dtype=np.uint8))
            return Texts((padded[::2] << 4 | padded[1::2]).tobytes(), places.size)
    joined = BETWEEN.join(texts)
    return Texts(joined.encode("utf-8", "surrogatepass"), 0) if joined.count(BETWEEN) == len(texts) - 1 else None


def _short(value: Any) -> Any:
    if isinstance(value, list | tuple | dict | set):
        return TextOf(_short(str(value)))
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}... ({hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]})"
    return value


def _numbers(values: Iterable[Any], number_of: Callable[[Any], float | None]) -> tuple[np.ndarray, np.ndarray]:
    """The values as numbers, and where one was logged as NaN."""
    found = [number_of(value) for value in values]
    numbers = np.array([np.nan if number is None else number for number in found], dtype=float)
    return numbers, np.array([number is not None and number != number for number in found], dtype=bool)


def _present(values: Iterable[Any], has_no_value: Callable[[Any], bool]) -> np.ndarray:
    return np.array([not has_no_value(value) for value in values], dtype=bool)
