"""Equality of the value that a program returned and the expected one, without making the program's value.

A program may return sets and dicts whose keys all have one hash, and making them would take a time that grows with the
square of their size, outside every limit. So its value stays as `python_test_wire` writes it, and keys are compared by
texts, whose hashes no program can choose.
"""

import hashlib
import json
import math
from fractions import Fraction
from typing import Any

from scalerl.verifiers.programs.python_test_wire import from_wire, to_wire

_TOLERANCE, _OF_LARGE, _OF_ZERO = Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**9)
"""Tolerance for an expected float or decimal fraction: a millionth of it, but at most 0.000001; above 1,000 a billionth
of it, so that 2500003.5 does not equal 2500003.0; 1e-9 for zero. Public graders allow 1e-5 at any size (APPS), 1e-6 at
any size (EvalPlus) or nothing (LiveCodeBench)."""
_BITS_OF_A_KEY = 10_000
"""Longer integers cannot be keys of a JSON text, since Python writes at most 4,300 decimal digits."""
_SIMPLE = ("plain", "int", "complex", "bytes", "bytearray")


def same(answer: Any, expected: Any, *, is_exact: bool = False) -> bool:
    """True if an answer, as `to_wire` writes it, equals `expected` as with Python's ==, within the tolerance of a
    float.

    JSON has neither tuples nor numeric keys: a list counts as a tuple with the same items, and an integer key as its
    text if all expected keys are text; with `is_exact` nothing but Python's == counts. Members of sets and keys must be
    exactly equal. Takes a time proportional to the size of both. Raises any exception for an answer that `to_wire` did
    not write.
    """
    kind, content = _kind(answer)
    match expected:
        case list() | tuple():
            kinds = (type(expected).__name__,) if is_exact else ("list", "tuple")
            is_alike = kind in kinds and len(content) == len(expected)
            return is_alike and all(same(*pair, is_exact=is_exact) for pair in zip(content, expected, strict=True))
        case set() | frozenset():
            is_alike = kind in ("set", "frozenset", "keys", "items")
            return is_alike and {*map(_key, content)} == {_key(to_wire(member, None)) for member in expected}
        case dict():
            of_text = not is_exact and all(isinstance(key, str) for key in expected)
            found = {_key(key, of_text): value for key, value in content} if kind == "dict" else {}
            wanted = {_key(to_wire(key, None)): value for key, value in expected.items()}
            is_alike = kind == "dict" and found.keys() == wanted.keys()
            return is_alike and all(same(found[key], value, is_exact=is_exact) for key, value in wanted.items())
    if kind not in _SIMPLE:
        return False
    value = from_wire(answer, None)
    if isinstance(expected, float) and isinstance(value, float | int) and not is_exact:
        if value == expected or (value != value and expected != expected):
            return True
        is_finite = isinstance(value, int) or math.isfinite(value)  # an integer may be too large for a float
        return is_finite and math.isfinite(expected) and within_tolerance(value, expected)
    return value == expected


def within_tolerance(answer: Any, expected: Any) -> bool:
    """True if two finite numbers are within tolerance, computed exactly."""
    one, other = Fraction(answer), Fraction(expected)
    size = abs(other)
    return abs(one - other) <= max(_TOLERANCE * min(size, 1), _OF_LARGE * size, _OF_ZERO)


def _kind(wire: Any) -> tuple[str, Any]:
    if not isinstance(wire, dict):
        return "plain", wire
    ((kind, content),) = wire.items()
    return kind, content


def _key(wire: Any, of_text: bool = False) -> str:
    """A text that the wires of two hashable values share if the values are equal; with `of_text` 7 is "7" too."""
    kind, content = _kind(wire)
    if kind in ("tuple", "frozenset"):
        keys = [*map(_key, content)]
        whole = json.dumps(keys if kind == "tuple" else sorted({*keys}))
        return f"{kind} {hashlib.sha256(whole.encode()).hexdigest()}"
    if kind not in _SIMPLE or kind == "bytearray":
        raise TypeError(f"{kind} is no key")
    match from_wire(wire, None):
        case int() as value if of_text and type(value) is int and value.bit_length() <= _BITS_OF_A_KEY:
            return f"text {value}"
        case str(value):
            return f"text {value}"
        case bytes(value):
            return f"bytes {value.hex()}"
        case complex(real=real, imag=imag) if imag:
            return f"{_number(real)} {_number(imag)}"
        case complex(real=value) | (int(value) | float(value)):
            return _number(value)
        case None:
            return "none"
    raise TypeError(f"{wire!r:.80} is no key")


def _number(value: float) -> str:
    return value.hex() if isinstance(value, float) and not value.is_integer() else hex(int(value))
