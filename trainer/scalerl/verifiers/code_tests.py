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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
            tests.append(CallTest(call=row["call"], args=tuple(row["args"]), expected=row["expected"]))
        elif kind is StdioTest and isinstance(row["stdin"], str) and isinstance(row["stdout"], str):
            tests.append(StdioTest(stdin=row["stdin"], stdout=row["stdout"]))
        else:
            raise ValueError(
                f"{where}: test {number} is {dict(row)!r:.200}; a test is "
                '{"call": "f", "args": [...], "expected": ...} or {"stdin": "...", "stdout": "..."}'
            )
    return tuple(tests)


def judge_code(
    program: str,
    tests: Sequence[CodeTest],
    *,
    sandbox: Sandbox,
    limits: Limits,
    relative: float = 1e-6,
    absolute: float = 1e-9,
) -> "Outcome":
    """The outcome of `program` on all of `tests` together, which share one sandbox and its `limits`.

    Calls run one after another in one process, tests of standard input in one fresh process each. Floats may differ
    by `relative` or `absolute`.
    """
    if not tests:
        raise ValueError("judge_code: no tests; without any, every program would be right")
    in_order = sorted(tests, key=lambda test: isinstance(test, StdioTest))  # as the harness answers them
    request = json.dumps({"program": program, "questions": [_question(test) for test in in_order]})
    try:
        finished = sandbox.run(HARNESS, stdin=request, limits=limits)
    except SandboxTimedOut:
        return "timed_out"
    except SandboxError:
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
        return {"call": test.call, "args": test.args}
    return {"stdin": test.stdin}


def _agrees(answer: Any, test: CodeTest, relative: float, absolute: float) -> bool:
    if isinstance(test, StdioTest):
        return isinstance(answer, str) and normal_lines(answer) == normal_lines(test.stdout)
    return same(answer, test.expected, relative=relative, absolute=absolute)


def normal_lines(text: str) -> list[str]:
    """Lines with single spaces between words, without empty lines at either end."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


OTHER = object()
"""Stands for a value that is none of those the harness can write, and equals nothing."""


def decoded(wire: Any) -> Any:
    """The value the harness wrote: `{"list": [1, {"set": [2]}]}` is `[1, {2}]`; ValueError for what it never writes."""
    if not isinstance(wire, dict):
        if isinstance(wire, list):
            raise ValueError("a list without its kind")
        return wire
    match list(wire.items()):
        case [("list", list(items))]:
            return [decoded(item) for item in items]
        case [("set", list(items))]:
            return {_as_key(decoded(item)) for item in items}
        case [("dict", list(items))] if all(isinstance(item, list) and len(item) == 2 for item in items):
            return {_as_key(decoded(key)): decoded(value) for key, value in items}
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
    """Whether `answer` is `expected` as Python's == has it, but numbers within tolerance where one of them is a float.

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
                answer = {str(key) if type(key) is int else key: value for key, value in answer.items()}
            return answer.keys() == expected.keys() and all(alike(answer[key], expected[key]) for key in expected)
        case float() | int() if isinstance(answer, float | int) and float in (type(answer), type(expected)):
            return _close(answer, expected, relative, absolute)
    return answer == expected


def _close(answer: float, expected: float, relative: float, absolute: float) -> bool:
    if math.isnan(expected):
        return math.isnan(answer)
    try:
        return math.isclose(answer, expected, rel_tol=relative, abs_tol=absolute)
    except OverflowError:  # an integer beyond every float
        return False
