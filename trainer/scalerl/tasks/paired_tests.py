r"""Tests of a program as two lists, inputs and outputs: APPS, TACO and CodeContests as published.

    {"inputs": ["2 2\n"], "outputs": ["4\n"]}                               lines may also be a list
    {"inputs": [[2, 2]], "outputs": [4], "fn_name": "add"}                  `fn_name` null is standard input
    {"inputs": [[2], [5]], "outputs": [[4], [10]], "fn_name": "twice"}      every output in its own list
    {"inputs": [["\"ab\""]], "outputs": ["\"ba\""], "fn_name": "turned"}    texts as JSON in JSON
    {"input": ["2 2\n"], "output": ["4\n"]}                                 CodeContests

Outputs that are all lists of one item are unwrapped, unless the program's first line declares that it returns a list.
Keys of an argument that are all integers become integers, which JSON cannot write (as in APPS' own grader).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from scalerl.tasks.files import unpacked
from scalerl.tasks.text_task import UnusableError
from scalerl.verifiers.programs.code_tests import CodeTest, read_tests

TEST_COLUMNS = ("public_tests", "private_tests", "generated_tests")
"""Columns with the tests of CodeContests."""


def joined_columns(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """All tests of a row of CodeContests or rStar-Coder as two lists; None for any other row."""
    if {"inputs", "outputs"} <= row.keys() and not {"tests", "test_list", "test", "input_output"} & row.keys():
        inputs, outputs = (unpacked(row[name]) for name in ("inputs", "outputs"))
        return {"inputs": inputs, "outputs": outputs, "fn_name": row.get("func_name") or row.get("fn_name")}
    columns = [unpacked(row.get(name)) for name in TEST_COLUMNS]
    parts = [one for one in columns if isinstance(one, dict)]
    if not parts or not all({"input", "output"} <= part.keys() for part in parts):
        return None
    return {to: [one for part in parts for one in part[of]] for of, to in (("input", "inputs"), ("output", "outputs"))}


def paired_tests(
    inputs: list[Any], outputs: list[Any], call: Any, where: str, beginning: str = ""
) -> tuple[CodeTest, ...]:
    """The tests; raises UnusableError if there are none, or the numbers of inputs and outputs differ.

    `beginning` is the start of the program: a starter code, or a whole solution.
    """
    if not inputs or len(inputs) != len(outputs):
        raise UnusableError(f"{where}: tests have {len(inputs)} inputs and {len(outputs)} outputs")
    if not isinstance(call, str) or not call:
        rows = [
            {"stdin": as_lines(given, f"{where}: an input"), "stdout": as_lines(wanted, f"{where}: an output")}
            for given, wanted in zip(inputs, outputs, strict=True)
        ]
        return read_tests(rows, where)
    if _are_wrapped(outputs, call, beginning):
        outputs = [wanted[0] for wanted in outputs]
    texts = [one for given in inputs if isinstance(given, list) for one in given if isinstance(one, str)]
    if texts and all(_unquoted(text) != text for text in texts):
        inputs = [[_unquoted(one) for one in given] if isinstance(given, list) else given for given in inputs]
        outputs = [_unquoted(wanted) for wanted in outputs]
    rows = [
        {"call": method_of(call, beginning), "args": _with_integer_keys(given), "expected": wanted}
        for given, wanted in zip(inputs, outputs, strict=True)
    ]
    return read_tests(rows, where)


def method_of(call: str, beginning: str) -> str:
    """Name to call: `Solution.add` if the program starts with that class."""
    return f"Solution.{call}" if "class Solution" in beginning else call


def _are_wrapped(outputs: list[Any], call: str, beginning: str) -> bool:
    if not all(isinstance(wanted, list) and len(wanted) == 1 for wanted in outputs):
        return False
    gives_list = re.search(rf"def {re.escape(call)}\(.*\)\s*->\s*[\"']?(?:typing\.)?(?:list|tuple)", beginning, re.I)
    return gives_list is None or all(isinstance(wanted[0], list) for wanted in outputs)


def _unquoted(value: Any) -> Any:
    """Text parsed from a text that is JSON."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _with_integer_keys(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        {int(key): item for key, item in one.items()}
        if isinstance(one, dict) and one and all(re.fullmatch(r"-?(0|[1-9]\d*)", key) for key in one)
        else one
        for one in given
    ]


def as_lines(written: Any, where: str) -> str:
    """Standard input or output: a text, a number, or a list of lines; raises ValueError for anything else."""
    lines = written if isinstance(written, list) else [written]
    if not all(isinstance(line, str | int | float) for line in lines):
        raise ValueError(f"{where} is {written!r:.80}; expected text, or a list of lines")
    return "\n".join(map(str, lines))
