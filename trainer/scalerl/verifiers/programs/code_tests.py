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
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from scalerl.rollout import Outcome
from scalerl.sandbox import Limits, Sandbox, SandboxFailed, SandboxTimedOut
from scalerl.verifiers.programs.code_values import same, within_tolerance
from scalerl.verifiers.programs.given_names import imports_for
from scalerl.verifiers.programs.python_test_wire import Unsendable, to_wire

HARNESS = "\n\n".join(
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("python_test_wire.py", "code_harness.py")
)


@dataclass(frozen=True, kw_only=True)
class CallTest:
    """A call and its value: `CallTest(call="add", args=(2, 2), expected=4)`; `Solution.add` uses a fresh instance."""

    call: str
    args: tuple[Any, ...]
    expected: Any
    is_exact: bool = False
    """True if an assertion of Python is meant: its own `==`, and a function with just this name."""


@dataclass(frozen=True, kw_only=True)
class StdioTest:
    """Standard input and expected output: `StdioTest(stdin="2 2\\n", stdout="4\\n")`."""

    stdin: str
    stdout: str


_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_PLACES_OF_A_VALUE = 6
"""Number of places from which an expected decimal fraction stands for all numbers that round to it."""
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
                    to_wire(row[name], refuse_value)
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
    gives_names: bool = False,
) -> Outcome:
    """Outcome of `program` on all `tests`, which share one sandbox and its `limits`.

    Calls run one after another in one process, standard-input tests in a fresh process each. `before` is Python text
    that runs before the program in each process; with `gives_names` both may use the names of `given_names`.

    ValueError without a test.
    """
    if not tests:
        raise ValueError("judge_code: no tests; without a test every program would be right")
    in_order = sorted(tests, key=lambda test: isinstance(test, StdioTest))  # the harness's order
    given = imports_for(f"{before}\n{program}") if gives_names else ""
    questions = [_question(test) for test in in_order]
    request = json.dumps({"given": given, "before": before, "program": program, "questions": questions})
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
        is_right = len(lines) == len(in_order) and all(map(_agrees, map(json.loads, lines), in_order))
    except Exception:  # any: not written by the harness, so the program wrote to the channel
        return "wrong"
    return "right" if is_right else "wrong"


def _question(test: CodeTest) -> dict[str, Any]:
    """Part of a test that the program may see."""
    if isinstance(test, CallTest):
        args = [to_wire(value, refuse_value) for value in test.args]
        return {"call": test.call, "args": args, "is_exact": test.is_exact}
    return {"stdin": test.stdin}


def _agrees(answer: Any, test: CodeTest) -> bool:
    if isinstance(test, CallTest):
        return same(answer, test.expected, is_exact=test.is_exact)
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
    return rounds or within_tolerance(one, other)


def normal_lines(text: str) -> list[str]:
    """Lines with single spaces between words, without empty lines at either end."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def refuse_value(value: Any) -> NoReturn:
    """Raise ValueError for an argument that cannot be sent."""
    raise ValueError(
        f"a value is of type {type(value).__name__}; every value must be None, a number, text, bytes, a list, a tuple, "
        "a set or a dict"
    )
