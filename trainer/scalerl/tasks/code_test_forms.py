"""The forms in which task files write the tests of a program, made those of `scalerl.verifiers.code_tests`.

    [{"call": "add", "args": [2, 2], "expected": 4}, {"stdin": "2 2", "stdout": "4"}]      our own
    ["assert add(2, 2) == 4", ...]                                                         MBPP
    "def check(candidate):\\n    assert candidate(2, 2) == 4 ..."  with `entry_point`       HumanEval
    {"inputs": [[2, 2]], "outputs": [4], "fn_name": "add"}, {"inputs": ["2 2"], "outputs": ["4"]}   APPS and its like
    [{"input": "2 2", "output": "4", "testtype": "stdin"}]                                 LiveCodeBench

Each may also stand in a text as JSON. An assertion is read, not run: it must compare a call with literals for equality.
One that does more cannot be kept apart from the program in the sandbox, so its problem is left out and counted.
"""

import ast
import json
from collections.abc import Sequence
from typing import Any

from scalerl.tasks.file_task import UnusableError
from scalerl.verifiers.code_tests import CallTest, CodeTest, StdioTest, read_tests


def written_tests(written: Any, where: str, *, entry_point: str | None = None) -> tuple[CodeTest, ...]:
    """The tests of one problem; ValueError where they have no such form, UnusableError where we cannot run them."""
    match _unpacked(written):
        case str(text):
            return _asserted(text, where, entry_point)
        case {"inputs": list(inputs), "outputs": list(outputs), **rest} if len(inputs) == len(outputs):
            return _of_lists(inputs, outputs, rest.get("fn_name"), where)
        case [str(), *_] as lines if all(isinstance(line, str) for line in lines):
            return _asserted("\n".join(lines), where, None)
        case [{"input": _, "output": _}, *_] as rows:
            return tuple(_of_live_code(row, where) for row in rows)
        case list(rows) if all(isinstance(row, dict) for row in rows):
            return read_tests([_written_only(row) for row in rows], where)
    raise ValueError(f"{where}: tests are {written!r:.120}; their forms are in scalerl.tasks.code_test_forms")


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
        return read_tests([{"call": call, "args": given, "expected": wanted} for given, wanted in pairs], where)
    return read_tests([{"stdin": _lines(given), "stdout": _lines(wanted)} for given, wanted in pairs], where)


def _lines(written: Any) -> Any:
    """Lines that stand in a list, as one text."""
    return "\n".join(map(str, written)) if isinstance(written, list) else written


def _of_live_code(row: dict[str, Any], where: str) -> CodeTest:
    if row.get("testtype", "stdin") != "stdin":
        raise UnusableError(f"{where}: a test has type {row['testtype']!r}; of LiveCodeBench only stdin is supported")
    return StdioTest(stdin=str(row["input"]), stdout=str(row["output"]))


def _asserted(text: str, where: str, entry_point: str | None) -> tuple[CodeTest, ...]:
    """Calls and values of all assertions in Python text; `entry_point` is what `candidate` stands for."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{where}: tests are not Python ({error.msg}, line {error.lineno})") from None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if not found:
        raise ValueError(f"{where}: tests hold no assertion; without one every program would be right")
    return tuple(_of_assertion(node.test, where, entry_point) for node in found)


def _of_assertion(test: ast.expr, where: str, entry_point: str | None) -> CallTest:
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id=name), args=args, keywords=[]), ops=[ast.Eq()], comparators=[value]
        ):
            try:
                values: Sequence[Any] = [ast.literal_eval(one) for one in (*args, value)]
                json.dumps(values[:-1])  # how arguments travel into the sandbox
            except (ValueError, TypeError):
                values = ()
            if values and not any(map(_is_changed_by_json, values[:-1])):
                call = entry_point if entry_point and name == "candidate" else name
                return CallTest(call=call, args=tuple(values[:-1]), expected=values[-1])
    raise UnusableError(f"{where}: `{ast.unparse(test)[:80]}` compares more than a call with literals")


def _is_changed_by_json(value: Any) -> bool:
    """Whether an argument would reach the program as something else: a tuple as a list, a key 1 as "1"."""
    return json.loads(json.dumps(value)) != value
