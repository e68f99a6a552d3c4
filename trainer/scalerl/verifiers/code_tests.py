"""Outcome of a program written by the policy, by tests that call it or feed its standard input.

Only the program and the inputs enter the sandbox. The results come back as data and are compared with the expected
values outside. So a program that prints "all passed", exits early, patches the comparison or searches files and frames
gains nothing: the only way to return the expected value is to compute it.

    right       every test gave the expected value
    wrong       a test did not, or the program failed, exceeded a limit, or corrupted its own results
    timed_out   the program could not be started in time
    crashed     the sandbox failed, or the harness failed before the program's first line

The last two say nothing about the program, so it is dropped from its group.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from scalerl.rollout import Outcome
from scalerl.sandbox import Limits, Sandbox, SandboxFailed, SandboxTimedOut
from scalerl.verifiers.python_test_wire import Unsendable, from_wire, to_wire

HARNESS = "\n\n".join(
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("python_test_wire.py", "code_harness.py")
)


@dataclass(frozen=True, kw_only=True)
class CallTest:
    """A call and its value: `CallTest(call="add", args=(2, 2), expected=4)`; `Solution.add` uses a fresh instance."""

    call: str
    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True, kw_only=True)
class StdioTest:
    """Standard input and expected output: `StdioTest(stdin="2 2\\n", stdout="4\\n")`."""

    stdin: str
    stdout: str


_TOLERANCE, _OF_LARGE, _OF_ZERO = Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**9)
"""Tolerance for an expected float or decimal fraction: a millionth of it, but at most 0.000001; above 1,000 a billionth
of it, so that 2500003.5 does not equal 2500003.0; 1e-9 for zero. Public graders allow 1e-5 at any size (APPS), 1e-6 at
any size (EvalPlus) or nothing (LiveCodeBench)."""
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_PLACES_OF_A_VALUE = 6
"""An expected decimal fraction with so many places stands for all numbers that it rounds."""
_BITS_OF_A_KEY = 10_000
"""Longer integers are no keys of a JSON text: Python writes at most 4,300 decimal digits."""
_MOST_PLACES = 400
"""Numbers longer, larger or smaller than any float are compared exactly."""

CodeTest = CallTest | StdioTest


def read_tests(rows: Sequence[Mapping[str, Any]], where: str) -> tuple[CodeTest, ...]:
    """Tests as a task file writes them; `where` names file and problem in errors."""
    if not rows:
        raise ValueError(f"{where}: no tests; without a test every program would be right")
    return tuple(_test(row, f"{where}: test {number}") for number, row in enumerate(rows))


def _test(row: Mapping[str, Any], where: str) -> CodeTest:
    match row:
        case {"call": str(call), "args": list() | tuple() as args, "expected": expected} if len(row) == 3:
            for name in ("args", "expected"):
                try:
                    to_wire(row[name], _refused)
                except (ValueError, Unsendable) as error:
                    raise ValueError(f"{where}: {name}: {error}") from None
            return CallTest(call=call, args=tuple(args), expected=expected)
        case {"stdin": str(stdin), "stdout": str(stdout)} if len(row) == 2:
            for name in ("stdin", "stdout"):
                try:
                    row[name].encode()
                except UnicodeEncodeError as error:
                    fault = f"character {error.start} is half of a surrogate pair, which no file can store"
                    raise ValueError(f"{where}: {name}: {fault}") from None
            return StdioTest(stdin=stdin, stdout=stdout)
    raise ValueError(
        f"{where} is {dict(row)!r:.200}; a test is "
        '{"call": "f", "args": [...], "expected": ...} or {"stdin": "...", "stdout": "..."}'
    )


def judge_code(
    program: str,
    tests: Sequence[CodeTest],
    *,
    sandbox: Sandbox,
    limits: Limits,
    before: str = "",
) -> Outcome:
    """Outcome of `program` on all `tests`, which share one sandbox and its `limits`.

    Calls run one after another in one process, standard-input tests in a fresh process each. `before` is Python text
    that runs before the program in each process.
    """
    if not tests:
        raise ValueError("judge_code: no tests; without a test every program would be right")
    in_order = sorted(tests, key=lambda test: isinstance(test, StdioTest))  # the harness's order
    request = json.dumps({"before": before, "program": program, "questions": [_question(test) for test in in_order]})
    try:
        finished = sandbox.run(HARNESS, stdin=request, limits=limits)
    except SandboxTimedOut:
        return "timed_out"
    except (SandboxFailed, OSError):
        return "crashed"
    ready, *lines = finished.stdout.splitlines() or [""]
    if ready != "ready":
        return "timed_out" if finished.limit in ("wall", "cpu") else "crashed"
    if finished.limit is not None:
        return "wrong"
    try:
        answers = [from_wire(json.loads(line), lambda *_: OTHER) for line in lines]
    except Exception:  # any: not written by the harness, so the program wrote to the channel
        return "wrong"
    return "right" if len(answers) == len(in_order) and all(map(_agrees, answers, in_order)) else "wrong"


def _question(test: CodeTest) -> dict[str, Any]:
    """Part of a test that the program may see."""
    if isinstance(test, CallTest):
        return {"call": test.call, "args": [to_wire(value, _refused) for value in test.args]}
    return {"stdin": test.stdin}


def _agrees(answer: Any, test: CodeTest) -> bool:
    if isinstance(test, CallTest):
        return same(answer, test.expected)
    return isinstance(answer, str) and same_lines(normal_lines(answer), normal_lines(test.stdout))


def same_lines(answer: Sequence[str], expected: Sequence[str]) -> bool:
    """True if lines have the same words, comparing numbers by value: 4.0 is 4, and 0.3333333 is 0.33333333.

    An expected whole number is exact; one with a decimal point has the tolerance of a float, and with six places or
    more half a unit of its last place. A word with a leading zero is text, like everything else.
    """
    if list(answer) == list(expected):
        return True
    pairs = [(one.split(), other.split()) for one, other in zip(answer, expected, strict=False)]
    return len(answer) == len(expected) and all(
        len(one) == len(other) and all(map(_same_word, one, other)) for one, other in pairs
    )


def _same_word(answer: str, expected: str) -> bool:
    if answer == expected:
        return True
    if not (_NUMBER.fullmatch(answer) and _NUMBER.fullmatch(expected)):
        return False
    one, other = Decimal(answer), Decimal(expected)
    if one == other:
        return True
    places = max(len(answer), len(expected), abs(one.adjusted()), abs(other.adjusted()))
    if "." not in expected or places >= _MOST_PLACES:
        return False
    last = other.as_tuple().exponent
    assert isinstance(last, int)
    rounds = last <= -_PLACES_OF_A_VALUE and abs(one - other) * 2 <= Decimal(1).scaleb(last)
    return rounds or _close(one, other)


def normal_lines(text: str) -> list[str]:
    """Lines with single spaces between words, without empty lines at either end."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


OTHER = object()
"""Placeholder for values that the harness cannot write; equals nothing."""


def _refused(value: Any) -> NoReturn:
    """Raise ValueError for an argument that cannot be sent."""
    raise ValueError(
        f"a value is of type {type(value).__name__}; every value must be None, a number, text, bytes, a list, a tuple, "
        "a set or a dict"
    )


def same(answer: Any, expected: Any) -> bool:
    """True if `answer` equals `expected` as by Python's ==, within the tolerance of an expected float.

    JSON has neither tuples nor numeric keys: a list counts as a tuple with the same items, and an integer key as its
    text if all expected keys are text. Members of sets and keys must be exactly equal.
    """
    match expected:
        case list() | tuple():
            return (
                isinstance(answer, list | tuple) and len(answer) == len(expected) and all(map(same, answer, expected))
            )
        case dict():
            if not isinstance(answer, dict):
                return False
            if all(isinstance(key, str) for key in expected):
                answer = {
                    str(key) if type(key) is int and key.bit_length() <= _BITS_OF_A_KEY else key: value
                    for key, value in answer.items()
                }
            return answer.keys() == expected.keys() and all(same(answer[key], expected[key]) for key in expected)
        case float() if isinstance(answer, float | int):
            if answer == expected or (answer != answer and expected != expected):
                return True
            is_finite = isinstance(answer, int) or math.isfinite(answer)  # an integer may be too large for a float
            return is_finite and math.isfinite(expected) and _close(answer, expected)
    return answer == expected


def _close(answer: float | Decimal, expected: float | Decimal) -> bool:
    """True if two finite numbers are within tolerance, computed exactly."""
    one, other = Fraction(answer), Fraction(expected)
    size = abs(other)
    return abs(one - other) <= max(_TOLERANCE * min(size, 1), _OF_LARGE * size, _OF_ZERO)
