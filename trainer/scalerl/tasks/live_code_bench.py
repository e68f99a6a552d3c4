"""LiveCodeBench as published (livecodebench/code_generation_lite on Hugging Face, arXiv 2403.07974).

    question_content, starter_code ("" or "class Solution: ..."), difficulty, platform, question_id, ...
    public_test_cases    JSON: [{"input": "2 2\\n", "output": "4", "testtype": "stdin" or "functional"}, ...]
    private_test_cases   the same; or that JSON, pickled as one string, compressed by zlib, in base64
    metadata             JSON: {"func_name": "add"} if the tests are functional: one argument per line, each as JSON

Programs may use what the header of github.com/LiveCodeBench/LiveCodeBench (lcb_runner/evaluation) imports.
"""

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping
from typing import Any

from scalerl.tasks.files import TaskRow
from scalerl.tasks.paired_tests import method_of
from scalerl.verifiers.programs.code_tests import CallTest, CodeTest, StdioTest

MAX_TEST_BYTES = 1 << 30
"""Maximum uncompressed size of one problem's tests; the largest published ones are a tenth of this."""
DEEP = '__import__("sys").setrecursionlimit(50000)'
"""What LiveCodeBench runs before a program, besides imports (`scalerl.verifiers.programs.given_names`)."""
OF_ONE_STRING = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}
STRINGS = {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}


def question_of(content: str, starter_code: str) -> str:
    """Question of the problem, with instructions for the form of the program."""
    if starter_code.strip():
        return with_starter_code(content, starter_code)
    return f"{content}\n\nRead from standard input and print the answer."


def with_starter_code(content: str, starter_code: str) -> str:
    """Question with the given start of the program, if any."""
    if not starter_code.strip():
        return content
    return f"{content}\n\nBegin with this code:\n\n```python\n{starter_code.rstrip()}\n```"


def tests_of(row: TaskRow) -> tuple[CodeTest, ...]:
    """All tests of a problem, public ones first; raises ValueError for unreadable ones."""
    tests = [*_read("public_test_cases", row), *_read("private_test_cases", row)]
    if not tests:
        raise ValueError(f"{row.where}: no tests in public_test_cases and private_test_cases")
    metadata = row.values.get("metadata") or "{}"
    try:
        about = json.loads(metadata) if isinstance(metadata, str) else metadata
    except ValueError as error:
        raise ValueError(f"{row.where}: metadata is not JSON ({error})") from None
    call = about.get("func_name") if isinstance(about, Mapping) else None
    call = call and method_of(call, str(row.values.get("starter_code") or ""))
    return tuple(test_of(where, test, call) for where, test in tests)


def _read(column: str, row: TaskRow) -> list[tuple[str, Mapping[str, Any]]]:
    written = row.values.get(column)
    if written is None or written == "":
        return []
    where = f"{row.where}: {column}"
    try:
        tests = json.loads(_text(written)) if isinstance(written, str) else written
    except ValueError as error:
        raise ValueError(f"{where} is neither JSON nor in the published compressed form ({error})") from None
    if not isinstance(tests, list) or not all(isinstance(test, Mapping) for test in tests):
        raise ValueError(f"{where} is {str(tests)[:80]!r}; expected a list of tests")
    return [(f"{where}, test {number}", test) for number, test in enumerate(tests)]


def _text(written: str) -> str:
    """JSON as it is, or decoded from base64, zlib and a pickled string."""
    if written.lstrip().startswith("["):
        return written
    try:
        unpacking = zlib.decompressobj()
        pickled = unpacking.decompress(base64.b64decode(written, validate=True), MAX_TEST_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from None
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError("truncated" if not unpacking.unconsumed_tail else f"more than {MAX_TEST_BYTES} bytes")
    return pickled_string(pickled)


def pickled_string(pickled: bytes) -> str:
    """String in a pickle, read without unpickling, which could run any code; raises ValueError for other content."""
    found: list[str] = []
    for operation, argument, _ in pickletools.genops(pickled):
        if operation.name in STRINGS:
            found.append(str(argument))
        elif operation.name not in OF_ONE_STRING:
            raise ValueError(f"the pickle contains more than a string ({operation.name})")
    if len(found) != 1:
        raise ValueError(f"the pickle contains {len(found)} strings, not one")
    return found[0]


def test_of(where: str, test: Mapping[str, Any], call: str | None) -> CodeTest:
    """One test, which calls `call` if it is functional; raises ValueError if something is missing."""
    kind, given, wanted = test.get("testtype"), test.get("input"), test.get("output")
    if kind not in ("stdin", "functional") or not isinstance(given, str) or not isinstance(wanted, str):
        raise ValueError(f"{where} is {dict(test)!r:.120}; a test needs input, output and testtype stdin or functional")
    if kind == "stdin":
        return StdioTest(stdin=given, stdout=wanted)
    if call is None:
        raise ValueError(f"{where} is functional, but metadata has no func_name")
    try:
        args = tuple(json.loads(line) for line in given.split("\n"))
        return CallTest(call=call, args=args, expected=json.loads(wanted))
    except ValueError as error:
        raise ValueError(f"{where}: input and output must be JSON, one argument per line ({error})") from None
