"""Right or wrong of a program the policy wrote, by tests that call it or that feed its standard input.

Only the program and the inputs enter the sandbox. What comes back is data, and it is compared with the expected values
out here: a program that prints "all passed", leaves early, patches the comparison or looks through files and frames
finds nothing to gain, because the one way to give the expected value is to compute it.

    right       every test gave the expected value
    wrong       a test did not; or the program failed, was ended by a limit, or spoilt its own results
    timed_out   the program could not be started in time
    crashed     the sandbox itself failed, or the harness before the program's first line

The last two say nothing of the program: it leaves its group.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalerl.sandbox import Limits, Sandbox, SandboxError, SandboxTimedOut

if TYPE_CHECKING:  # batch loads torch
    from scalerl.rollout import Outcome

HARNESS = Path(__file__).with_name("code_harness.py").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class CallTest:
    """A call and its value: `CallTest(call="add", args=(2, 2), expected=4)`; `Solution.add` calls a fresh instance."""

    call: str
    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True, kw_only=True)
class StdioTest:
    """What is typed and what must be printed: `StdioTest(stdin="2 2\\n", stdout="4\\n")`."""

    stdin: str
    stdout: str
    exact_decimals: bool = False
    """Whether a decimal that is expected must be met exactly, as LiveCodeBench has it, not within the tolerance."""


NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d{0,4000})(?:\.\d{0,4000})?|\.\d{1,4000})(?:[eE][-+]?\d{1,4})?")
"""A number as programs print it; one with zeros in front is a text of digits."""
CodeTest = CallTest | StdioTest
KEYS = {frozenset({"call", "args", "expected"}): CallTest, frozenset({"stdin", "stdout"}): StdioTest}


def read_tests(rows: Sequence[Mapping[str, Any]], where: str) -> tuple[CodeTest, ...]:
    """Tests as a task file writes them; `where` names the file and problem in an error."""
    if not rows:
        raise ValueError(f"{where}: no tests; a problem needs at least one, or every program would be right")
    tests: list[CodeTest] = []
    for number, row in enumerate(rows):
        kind = KEYS.get(frozenset(row))
        if kind is CallTest and isinstance(row["call"], str) and isinstance(row["args"], list | tuple):
            for name in ("args", "expected"):
                _refuse_what_cannot_travel(row[name], f"{where}: test {number}: {name}")
            tests.append(CallTest(call=row["call"], args=tuple(row["args"]), expected=row["expected"]))
        elif kind is StdioTest and isinstance(row["stdin"], str) and isinstance(row["stdout"], str):
            for name in ("stdin", "stdout"):
                _refuse_what_is_no_unicode(row[name], f"{where}: test {number}: {name}")
            tests.append(StdioTest(stdin=row["stdin"], stdout=row["stdout"]))
        else:
            raise ValueError(
                f"{where}: test {number} is {dict(row)!r:.200}; a test is "
                '{"call": "f", "args": [...], "expected": ...} or {"stdin": "...", "stdout": "..."}'
            )
    return tuple(tests)


def _refuse_what_cannot_travel(value: Any, where: str) -> None:
    try:
        encoded(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _refuse_what_is_no_unicode(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: character {error.start} is half of a surrogate pair, which no file holds") from None


def judge_code(
    program: str,
    tests: Sequence[CodeTest],
    *,
    sandbox: Sandbox,
    limits: Limits,
    before: str = "",
    relative: float = 1e-6,
    absolute: float = 1e-9,
) -> "Outcome":
    """The outcome of `program` on all of `tests` together, which share one sandbox and its `limits`.

    Calls run one after another in one process, tests of standard input in one fresh process each. `before` is Python
    text that runs first wherever the program does. Floats may differ by `relative` or `absolute`.
    """
    if not tests:
        raise ValueError("judge_code: no tests; without any, every program would be right")
    in_order = sorted(tests, key=lambda test: isinstance(test, StdioTest))  # as the harness answers them
    request = json.dumps({"before": before, "program": program, "questions": [_question(test) for test in in_order]})
    try:
        finished = sandbox.run(HARNESS, stdin=request, limits=limits)
    except SandboxTimedOut:
        return "timed_out"
    except (SandboxError, OSError):
        return "crashed"
    ready, *lines = finished.stdout.splitlines() or [""]
    if ready != "ready":
        return "timed_out" if finished.limit in ("wall", "cpu") else "crashed"
    if finished.limit is not None:
        return "wrong"
    try:
        answers = [decoded(json.loads(line)) for line in lines]
    except (ValueError, RecursionError):  # not what the harness writes: the program wrote there itself
        return "wrong"
    if len(answers) != len(in_order):
        return "wrong"
    agree = all(_agrees(answer, test, relative, absolute) for answer, test in zip(answers, in_order, strict=True))
    return "right" if agree else "wrong"


def _question(test: CodeTest) -> dict[str, Any]:
    """What the program may know of a test."""
    if isinstance(test, CallTest):
        return {"call": test.call, "args": [encoded(value) for value in test.args]}
    return {"stdin": test.stdin}


def _agrees(answer: Any, test: CodeTest, relative: float, absolute: float) -> bool:
    if isinstance(test, StdioTest):
        tolerance = (0.0, 0.0) if test.exact_decimals else (relative, absolute)
        return isinstance(answer, str) and same_output(answer, test.stdout, *tolerance)
    return same(answer, test.expected, relative=relative, absolute=absolute)


def same_output(answer: str, expected: str, relative: float, absolute: float) -> bool:
    """Whether two texts have the same words in the same lines; numbers may be written otherwise.

    "4.0" is 4 and "0.5" is 0.50 by their values. A decimal fraction that is expected may be met within tolerance, an
    integer may not. Digits with zeros in front, as 007, are text.
    """
    lines, wanted = ([line.split() for line in normal_lines(text)] for text in (answer, expected))
    return [len(line) for line in lines] == [len(line) for line in wanted] and all(
        one == other or _same_number(one, other, relative, absolute)
        for line, wanted_line in zip(lines, wanted, strict=True)
        for one, other in zip(line, wanted_line, strict=True)
    )


def _same_number(answer: str, expected: str, relative: float, absolute: float) -> bool:
    if not (NUMBER.fullmatch(answer) and NUMBER.fullmatch(expected)):
        return False
    one, other = Decimal(answer), Decimal(expected)
    if one == other:
        return True
    if other == other.to_integral_value() and "." not in expected:
        return False
    return abs(one - other) <= max(Decimal(relative) * abs(other), Decimal(absolute))


def normal_lines(text: str) -> list[str]:
    """Lines with single spaces between words, without empty lines at either end."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


OTHER = object()
"""Stands for a value that is none of those the harness can write, and equals nothing."""


MAX_DEPTH = 100
"""Of lists in lists, as in the harness."""
MAX_INT_BITS = 10_000
"""Longer integers travel as hexadecimal digits: Python refuses more than 4,300 decimal ones."""


def encoded(value: Any, depth: int = 0) -> Any:
    """An argument for the harness: `(1, {2})` is `{"tuple": [1, {"set": [2]}]}`; ValueError where it cannot travel."""
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        return {"int": format(value, "x")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if depth >= MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {"dict": [[encoded(key, depth + 1), encoded(item, depth + 1)] for key, item in value.items()]}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return {kind.__name__: [encoded(item, depth + 1) for item in value]}
    raise ValueError(
        f"a value is of type {type(value).__name__}; it may be None, a number, text, bytes, list, tuple, set or dict"
    )


def decoded(wire: Any, depth: int = 0) -> Any:
    """The value the harness wrote: `{"list": [1, {"set": [2]}]}` is `[1, {2}]`; ValueError for what it never writes."""
    if not isinstance(wire, dict):
        if isinstance(wire, list):
            raise ValueError("a list without its kind")
        return wire
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    depth += 1
    match list(wire.items()):
        case [("list", list(items))]:
            return [decoded(item, depth) for item in items]
        case [("set", list(items))]:
            return {_as_key(decoded(item, depth)) for item in items}
        case [("dict", list(items))] if all(isinstance(item, list) and len(item) == 2 for item in items):
            return {_as_key(decoded(key, depth)): decoded(value, depth) for key, value in items}
        case [("int", str(digits))]:
            return int(digits, 16)
        case [("bytes", str(digits))]:
            return bytes.fromhex(digits)
        case [("complex", [float(real), float(imaginary)])]:
            return complex(real, imaginary)
        case [("other", _)]:
            return OTHER
    raise ValueError(f"no value of the harness: {list(wire)!r:.200}")


def _as_key(value: Any) -> Any:
    """`value` as what it was before it became a list: keys and members of sets are tuples and frozen sets."""
    match value:
        case list():
            return tuple(map(_as_key, value))
        case set():
            return frozenset(value)
        case dict():
            raise ValueError("a dict as a key")
    return value


def same(answer: Any, expected: Any, *, relative: float, absolute: float) -> bool:
    """Whether `answer` is `expected` as Python's == has it, but within tolerance of a float that is expected.

    An integer that is expected is met by itself alone: 2.0 is 2, and 2500003.5 is not 2500003.

    JSON can write neither tuples nor keys that are numbers: a list counts as a tuple with the same items, and an
    integer key as its text where the expected keys are all text. Members of sets and keys must be equal exactly.
    """

    def alike(one: Any, other: Any) -> bool:
        return same(one, other, relative=relative, absolute=absolute)

    match expected:
        case list() | tuple():
            return isinstance(answer, list) and len(answer) == len(expected) and all(map(alike, answer, expected))
        case dict():
            if not isinstance(answer, dict):
                return False
            if all(isinstance(key, str) for key in expected):
                answer = {_as_text(key): value for key, value in answer.items()}
            return answer.keys() == expected.keys() and all(alike(answer[key], expected[key]) for key in expected)
        case float() if isinstance(answer, float | int) and not isinstance(answer, bool):
            return _close(answer, expected, relative, absolute)
    return answer == expected


def _as_text(key: Any) -> Any:
    """An integer as JSON writes it where it is a key."""
    return str(key) if type(key) is int and key.bit_length() <= MAX_INT_BITS else key


def _close(answer: float, expected: float, relative: float, absolute: float) -> bool:
    """Whether two numbers are within tolerance; exactly, since an integer may be beyond every float."""
    if answer == expected or (answer != answer and expected != expected):
        return True
    if isinstance(answer, float) and isinstance(expected, float):
        return math.isclose(answer, expected, rel_tol=relative, abs_tol=absolute)
    if not all(isinstance(number, int) or math.isfinite(number) for number in (answer, expected)):
        return False
    one, other = Fraction(answer), Fraction(expected)
    return abs(one - other) <= max(Fraction(relative) * max(abs(one), abs(other)), Fraction(absolute))
