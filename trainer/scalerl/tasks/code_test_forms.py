"""The forms in which task files write the tests of a program, made those of `scalerl.verifiers`.

    [{"call": "add", "args": [2, 2], "expected": 4}, {"stdin": "2 2", "stdout": "4"}]      our own
    {"inputs": [[2, 2]], "outputs": [4], "fn_name": "add"}, {"inputs": ["2 2"], "outputs": ["4"]}   APPS and its like
    [{"input": "2 2", "output": "4", "testtype": "stdin"}]                                 LiveCodeBench
    ["assert add(2, 2) == 4", ...]                                                         MBPP
    "def check(candidate):\\n    assert candidate(2, 2) == 4 ..."  with `entry_point`       HumanEval

Each may also stand in a text as JSON. Of Python, assertions that compare a call with literals are read as such tests,
with the tolerance of `code_tests`. Other Python runs as it is written (`python_tests`); with a form, all does.
"""

import json
from typing import Any

from scalerl.tasks.file_task import UnusableError
from scalerl.tasks.python_test_code import PythonSource, compared_calls, python_test
from scalerl.verifiers.code_tests import CodeTest, StdioTest, read_tests
from scalerl.verifiers.python_tests import PythonTest


def written_tests(written: Any, where: str, source: PythonSource) -> tuple[CodeTest, ...] | PythonTest:
    """The tests of one problem; ValueError where they have no such form, UnusableError where we cannot run them.

    `source` is what tests in Python rely on beside their own text.
    """
    match _unpacked(written):
        case str(text):
            return _in_python(text, where, source)
        case {"inputs": list(inputs), "outputs": list(outputs), **rest} if len(inputs) == len(outputs):
            return _of_lists(inputs, outputs, _function(rest.get("fn_name"), source), where)
        case [str(), *_] as lines if all(isinstance(line, str) for line in lines):
            return _in_python("\n".join(lines), where, source)
        case [{"input": _, "output": _}, *_] as rows:
            return tuple(_of_live_code(row, where) for row in rows)
        case list(rows) if all(isinstance(row, dict) for row in rows):
            return read_tests([_written_only(row) for row in rows], where)
    raise ValueError(f"{where}: tests are {written!r:.120}; their forms are in scalerl.tasks.code_test_forms")


def _in_python(text: str, where: str, source: PythonSource) -> tuple[CodeTest, ...] | PythonTest:
    test = python_test(text, where, source)
    return test if source.runs_as_written else compared_calls(text, source) or test


def _unpacked(written: Any) -> Any:
    """`written`, out of a text that is JSON."""
    if isinstance(written, str) and written.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(written)
        except ValueError:
            return written
    return written


def _written_only(row: dict[str, Any]) -> dict[str, Any]:
    """A test without the columns of the other kind, which Parquet fills with nulls."""
    kinds = (("call", "args", "expected"), ("stdin", "stdout"))
    for names, others in (kinds, kinds[::-1]):
        if all(name in row for name in names) and all(row.get(other) is None for other in others):
            return {name: value for name, value in row.items() if name not in others}
    return row


def _of_lists(inputs: list[Any], outputs: list[Any], call: str | None, where: str) -> tuple[CodeTest, ...]:
    pairs = list(zip(inputs, outputs, strict=True))
    if call is not None:
        # APPS and TACO publish each value in a list of its own.
        are_wrapped = all(isinstance(wanted, list) and len(wanted) == 1 for wanted in outputs)
        values = [wanted[0] for wanted in outputs] if are_wrapped else outputs
        rows = [{"call": call, "args": given, "expected": value} for given, value in zip(inputs, values, strict=True)]
        return read_tests(rows, where)
    return read_tests([{"stdin": _lines(given), "stdout": _lines(wanted)} for given, wanted in pairs], where)


def _function(name: str | None, source: PythonSource) -> str | None:
    """The function to call: a method of Solution if the code that the problem starts with has that class."""
    return f"Solution.{name}" if name and "." not in name and "class Solution" in source.starter_code else name


def _lines(written: Any) -> Any:
    """Lines that stand in a list, as one text."""
    return "\n".join(map(str, written)) if isinstance(written, list) else written


def _of_live_code(row: dict[str, Any], where: str) -> CodeTest:
    if row.get("testtype", "stdin") != "stdin":
        raise UnusableError(f"{where}: a test has type {row['testtype']!r}; of LiveCodeBench only stdin is supported")
    return StdioTest(stdin=str(row["input"]), stdout=str(row["output"]))
