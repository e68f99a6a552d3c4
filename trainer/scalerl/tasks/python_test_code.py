"""Tests of a program that are Python text: which names they take from the program, and whether they can be run.

Assertions inside functions and classes count if something calls them. What pytest and unittest would call is called
here: functions named test..., methods named test..., and functions with assertions that nothing else calls.
"""

import ast
import builtins
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalerl.tasks.file_task import UnusableError
from scalerl.verifiers.code_tests import CallTest
from scalerl.verifiers.python_tests import PythonTest

OF_PYTHON = frozenset(dir(builtins)) | {"__name__", "__file__"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_THE_PROGRAM = re.compile(r"^from (?:solution|main|program|code|answer) import [^\n(]+$", re.MULTILINE)
"""How tests of KodCode and others name the program."""


@dataclass(frozen=True, kw_only=True)
class PythonSource:
    """What tests rely on beside their own text: `PythonSource(entry_point="add", before="import math")`."""

    entry_point: str | None = None
    """The function that `candidate` stands for and `check` is called with, as in HumanEval."""
    before: str = ""
    """Python text that both tests and program begin with."""
    setup: str = ""
    """Python text that runs before the tests, and may use what the program defines, as in MBPP."""
    starter_code: str = ""
    """What a program begins with."""
    solution: str | None = None
    """A program that should pass."""
    runs_as_written: bool = False
    """Whether assertions that only compare a call with literals run as Python too."""


def python_test(text: str, where: str, source: PythonSource) -> PythonTest:
    """`text` as a test that runs as it is written; UnusableError where it cannot, ValueError where it tests nothing."""
    text = _OF_THE_PROGRAM.sub("", text)
    tree = _parsed(text, where, "tests")
    if not any(map(_is_assertion, ast.walk(tree))):
        raise ValueError(f"{where}: tests hold no assertion; without one every program would be right")
    code = f"{source.setup}\n{text}" if source.setup.strip() else text
    calls = "\n".join(_calls(_parsed(code, where, "tests"), source.entry_point, where))
    whole = _parsed(f"{code}\n\n{calls}\n", where, "tests")
    before = _parsed(source.before, where, "what stands before the tests")
    names = _names_of_program(whole, set(_defined(before)), source, where)
    if missing := sorted((_imported(whole) | _imported(before)) - sys.stdlib_module_names):
        raise UnusableError(f"{where}: tests import {missing[0]}, and the sandbox has the standard library only")
    in_place = _discards_a_call(whole, names)
    return PythonTest(code=code, names=names, calls=calls, before=source.before, in_place=in_place)


def _is_assertion(node: ast.AST) -> bool:
    """Whether this is an assert, or a call of a unittest method like assertEqual."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return isinstance(node, ast.Assert) or (is_method and node.func.attr.startswith("assert"))


def _calls(tree: ast.Module, entry_point: str | None, where: str) -> Iterator[str]:
    """Calls, as Python text, of the functions and methods with assertions that the tests define and do not call."""
    defined = {node.name: node for node in tree.body if isinstance(node, _DEFINITIONS)}
    reached = _reached([node for node in tree.body if not isinstance(node, _DEFINITIONS)], defined)
    for node in defined.values():
        holds = any(map(_is_assertion, ast.walk(node))) or (node.name == "check" and entry_point is not None)
        if not holds or node.name in reached:
            continue
        reached |= _reached([node], defined)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            call = f"{node.name}({_arguments(node, 0, entry_point, where)})"
            yield f"__import__('asyncio').run({call})" if isinstance(node, ast.AsyncFunctionDef) else call
        else:
            yield from _calls_of_class(node, entry_point, where)


def _reached(nodes: Sequence[ast.AST], defined: Mapping[str, ast.AST]) -> set[str]:
    """The definitions that these nodes use, by themselves or through others."""
    reached, waiting = set[str](), list(nodes)
    while waiting:
        for one in ast.walk(waiting.pop()):
            if isinstance(one, ast.Name) and one.id in defined and one.id not in reached:
                reached.add(one.id)
                waiting.append(defined[one.id])
    return reached


def _calls_of_class(node: ast.ClassDef, entry_point: str | None, where: str) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases]
    if any(base.rpartition(".")[2].endswith("TestCase") for base in bases):
        result = f"__result_of_{node.name}"
        yield f"{result} = __import__('unittest').TestResult()"
        yield f"__import__('unittest').defaultTestLoader.loadTestsFromTestCase({node.name}).run({result})"
        yield f"assert {result}.testsRun and {result}.wasSuccessful()"
        return
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and any(map(_is_assertion, ast.walk(method))):
            if not method.name.startswith("test"):
                raise UnusableError(f"{where}: nothing calls {node.name}.{method.name}, which holds assertions")
            yield f"{node.name}().{method.name}({_arguments(method, 1, entry_point, where)})"


def _arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, skipped: int, entry_point: str | None, where: str
) -> str:
    """What a test is called with: nothing, or the function that is tested."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][skipped:]
    needed = names[: len(names) - len(function.args.defaults)]
    if not needed and all(default is not None for default in function.args.kw_defaults):
        return ""
    if len(needed) == 1 and entry_point is not None:
        return entry_point
    asked = ", ".join(needed) or "keywords"
    raise UnusableError(
        f"{where}: the test {function.name} takes {asked}, which nothing gives it; write tests that take nothing, or "
        "name the tested function in a column entry_point"
    )


def _parsed(text: str, where: str, what: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{where}: {what}: not Python ({error})") from None


def _names_of_program(tree: ast.Module, given: set[str], source: PythonSource, where: str) -> tuple[str, ...]:
    """The names that the tests use and nobody but the program defines."""
    entry_point = {source.entry_point} if source.entry_point is not None else set()
    known = (given | set(_defined(tree))) - entry_point
    loaded = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    names = [name for name in loaded if name not in known and name not in OF_PYTHON]
    # A function that has a name of Python's own, as MBPP's `sum`.
    names = names or _called_by_pythons_name(tree, loaded, known, source)
    if not names:
        raise UnusableError(f"{where}: tests use nothing of the program")
    return tuple(sorted(set(names)))


def _called_by_pythons_name(tree: ast.Module, loaded: list[str], known: set[str], source: PythonSource) -> list[str]:
    if source.solution is not None:
        try:
            of_solution = set(_defined(ast.parse(source.solution)))
        except SyntaxError:
            of_solution = set()
        return [name for name in loaded if name in of_solution and name not in known]
    first = next(node.test for node in ast.walk(tree) if isinstance(node, ast.Assert))
    calls = [node.func.id for node in ast.walk(first) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [name for name in calls if name not in known][:1]


def _defined(tree: ast.AST) -> Iterator[str]:
    """Every name that is bound anywhere in `tree`."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def _imported(tree: ast.AST) -> set[str]:
    """The outermost packages that `tree` imports."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
    return found


def _discards_a_call(tree: ast.AST, names: Sequence[str]) -> bool:
    """Whether a call of the program stands alone: what it does to its arguments is then what is tested."""
    return any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in names
        for node in ast.walk(tree)
    )


def compared_calls(text: str, source: PythonSource) -> tuple[CallTest, ...] | None:
    """Calls and values of all assertions, None where one of them is more than a call compared with literals."""
    if source.setup.strip():
        return None
    asserted = [node.test for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    tests = [_compared_call(test, source.entry_point) for test in asserted]
    return tuple(test for test in tests if test is not None) if None not in tests else None


def _compared_call(test: ast.expr, entry_point: str | None) -> CallTest | None:
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id=name), args=args, keywords=[]), ops=[ast.Eq()], comparators=[value]
        ):
            try:
                values: Sequence[Any] = [ast.literal_eval(one) for one in (*args, value)]
                json.dumps(values[:-1])  # how arguments travel into the sandbox
            except (ValueError, TypeError):
                return None
            if not any(map(_is_changed_by_json, values[:-1])):
                call = entry_point if entry_point and name == "candidate" else name
                return CallTest(call=call, args=tuple(values[:-1]), expected=values[-1])
    return None


def _is_changed_by_json(value: Any) -> bool:
    """Whether an argument would reach the program as something else: a tuple as a list, a key 1 as "1"."""
    return json.loads(json.dumps(value)) != value
