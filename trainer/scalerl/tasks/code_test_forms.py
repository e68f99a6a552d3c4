"""Forms of a program's tests in task files, converted to those of `scalerl.verifiers`.

    [{"call": "add", "args": [2, 2], "expected": 4}, {"stdin": "2 2", "stdout": "4"}]      our own
    {"inputs": ["2 2"], "outputs": ["4"]}, also with "fn_name"     APPS and similar: see `paired_tests`
    [{"input": "2 2", "output": "4", "testtype": "stdin"}]                                 LiveCodeBench and similar
    {"test_cases": [{"input": "2 2", "output": "4"}]}, also with "fn_name"                 SYNTHETIC-1
    ["assert add(2, 2) == 4", ...]                                                         MBPP
    "def check(candidate):\\n    assert candidate(2, 2) == 4 ..."  with `entry_point`       HumanEval

Each form may also be JSON, or printed by Python, in a text. Python assertions that compare a call with literals become
such tests, with the tolerance of `code_tests`. Other Python runs as written (`python_tests`), and with a published form
all of it.
"""

import json
from dataclasses import replace
from typing import Any

from scalerl.tasks.files import unpacked
from scalerl.tasks.live_code_bench import test_of
from scalerl.tasks.paired_tests import as_lines, method_of, paired_tests
from scalerl.tasks.program_text import python_tree
from scalerl.tasks.python_test_code import PythonSource, compared_calls, python_test
from scalerl.tasks.text_task import UnusableError
from scalerl.verifiers.programs.code_tests import CodeTest, StdioTest, read_tests
from scalerl.verifiers.programs.python_tests import PythonTest


def of_graders(written: Any) -> bool:
    """True for tests of inputs and outputs, whose public graders give programs names (`given_names`)."""
    match written:
        case {"inputs": _} | {"input": _} | {"test_cases": _} | [{"input": _, "output": _}, *_]:
            return True
    return False


def written_tests(written: Any, where: str, source: PythonSource) -> tuple[CodeTest, ...] | PythonTest:
    """Tests of one problem; raises ValueError for an unknown form, UnusableError if they cannot run here.

    `source` is what Python tests need besides their own text.
    """
    beginning = source.starter_code or source.solution or ""
    match unpacked_tests(written, where):
        case str(text) if text.strip():
            return _in_python(text, where, source)
        case "" | str() | {} as nothing if not nothing or isinstance(nothing, str):
            raise UnusableError(f"{where}: there are no tests")
        case {"inputs": list(inputs), "outputs": list(outputs), **rest}:
            return paired_tests(inputs, outputs, rest.get("fn_name"), where, beginning)
        case {"input": list(inputs), "output": list(outputs)}:
            return paired_tests(inputs, outputs, None, where)
        case [str(), *_] as lines if all(isinstance(line, str) for line in lines):
            return _in_python("\n".join(lines), where, source)
        case {"test_cases": list(rows), **rest} if rest.get("language") in (None, "python"):
            return written_tests(rows, where, source)
        case [{"input": _, "output": _, "fn_name": str(name)}, *_] as rows:
            inputs, outputs = ([row.get(key) for row in rows] for key in ("input", "output"))
            return paired_tests(inputs, outputs, name, where, beginning)
        case [{"input": _, "output": _}, *_] as rows:
            return tuple(_of_live_code(row, where, source) for row in rows)
        case list(rows) if all(isinstance(row, dict) for row in rows):
            return read_tests([_written_only(row) for row in rows], where)
    raise ValueError(f"{where}: tests are {written!r:.120}; docs/formats.md, under Task files, has the forms of tests")


def _in_python(text: str, where: str, source: PythonSource) -> tuple[CodeTest, ...] | PythonTest:
    test = python_test(text, where, source)
    calls = compared_calls(text, source) or ()
    if not source.runs_as_written:
        return calls or test
    return replace(test, calls=calls) if {one.call for one in calls} <= {*test.names} else test


def unpacked_tests(written: Any, where: str) -> Any:
    """`written`, parsed if it is a text with JSON or printed by Python; raises ValueError for broken JSON."""
    if not isinstance(written, str) or written.lstrip()[:1] not in ("[", "{"):
        return written
    try:
        return json.loads(written)
    except ValueError as error:
        if not isinstance(error, json.JSONDecodeError):  # Python's limit on the digits of an integer
            raise UnusableError(f"{where}: tests have a number that is too long ({error})") from None
        if python_tree(written):
            return unpacked(written)
        raise ValueError(f"{where}: tests: neither JSON ({error}) nor Python") from None


def _written_only(row: dict[str, Any]) -> dict[str, Any]:
    """A test without columns of the other kind, which Parquet fills with nulls."""
    kinds = (("call", "args", "expected"), ("stdin", "stdout"))
    for names, others in (kinds, kinds[::-1]):
        if all(name in row for name in names) and all(row.get(other) is None for other in others):
            return {name: value for name, value in row.items() if name not in others}
    return row


def _of_live_code(row: dict[str, Any], where: str, source: PythonSource) -> CodeTest:
    if row.get("testtype", "stdin") == "stdin":
        stdin, stdout = (as_lines(row[part], f"{where}: {part} of a test") for part in ("input", "output"))
        return StdioTest(stdin=stdin, stdout=stdout)
    about = row.get("metadata")
    call = (about.get("func_name") if isinstance(about, dict) else None) or source.entry_point
    if call is None:
        raise UnusableError(
            f"{where}: a test is {row['testtype']}, but neither metadata nor entry_point names a function"
        )
    return test_of(f"{where}: a test", row, method_of(call, source.starter_code))
