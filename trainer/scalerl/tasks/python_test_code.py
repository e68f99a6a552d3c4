"""Tests of a program in Python: the names they use from the program, and whether they can run."""

import ast
import builtins
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from scalerl.sandbox import OFFERED
from scalerl.tasks.calls_of_tests import RUNS_A_CLASS, calls_of_tests, has_assertion
from scalerl.tasks.program_text import bound_names, loaded_names, python_tree
from scalerl.tasks.text_task import UnusableError
from scalerl.verifiers.programs.code_tests import CallTest, refuse_value
from scalerl.verifiers.programs.given_names import given_names
from scalerl.verifiers.programs.python_test_wire import Unsendable, to_wire
from scalerl.verifiers.programs.python_tests import PythonTest

MODULES_OF_PROGRAM = frozenset({"solution", "main", "program", "submission", "candidate", "your_module", "your_code"})
"""Names that tests use for the program's file; other names are recognised by what the written solution defines."""
OF_PYTHON = frozenset(dir(builtins))


@dataclass(frozen=True, kw_only=True)
class PythonSource:
    """Context of tests besides their own text: `PythonSource(entry_point="add", before="import math")`."""

    entry_point: str | None = None
    """Function that `candidate` stands for and `check` is called with, as in HumanEval."""
    before: str = ""
    """Python text at the start of both tests and program."""
    setup: str = ""
    """Python text that runs before the tests and may use the program's definitions, as in MBPP."""
    solution: str | None = None
    """Program that should pass."""
    starter_code: str = ""
    """Start of the program, as in APPS and LeetCode."""
    gives_names: bool = False
    """True if tests and program may use the names of `programs.given_names` without importing them."""
    runs_as_written: bool = False
    """True if assertions that only compare a call with literals also run as Python."""

    @property
    def solved(self) -> set[str]:
        """Names that the written solution defines."""
        tree = python_tree(self.solution or "")
        return set() if tree is None else bound_names(ast.walk(tree))

    @property
    def given(self) -> set[str]:
        """Names that the tests need not get from the program."""
        own = {self.entry_point, *re.findall(r"\b(?:def|class) (\w+)", self.starter_code), *self.solved}
        return {*given_names()} - own if self.gives_names else set()


def python_test(text: str, where: str, source: PythonSource) -> PythonTest:
    """`text` as a test that runs as written; raises UnusableError if it cannot run, ValueError if it tests nothing."""
    tree = _parsed(text, where, "tests")
    imported = _imports_of_program(tree, source)
    if imported:
        tree = _without(tree, imported)
        text = ast.unparse(tree)
    calls = calls_of_tests(tree, source.entry_point, where)
    code = f"{source.setup}\n{text}" if source.setup.strip() else text
    if calls:
        code = "\n".join([f"{code}\n", *calls, ""])
    whole = _parsed(code, where, "tests")
    before = _parsed(source.before, where, "the text before the tests")
    if missing := sorted((_imported(whole) | _imported(before)) - sys.stdlib_module_names - {*OFFERED}):
        has = f"the standard library and {', '.join(OFFERED)}"
        raise UnusableError(f"{where}: tests import {missing[0]}, but the sandbox has only {has}")
    if not has_assertion(tree):
        raise ValueError(f"{where}: tests have no assertion, so every program would be right")
    names = _names_of_program(whole, bound_names(ast.walk(before)), source, where)
    names = tuple(sorted({*names, *(alias.name for node in imported for alias in node.names)} - {"*"}))
    if source.solved and "*" not in source.solved and (missing := sorted({*names} - source.solved)):
        raise UnusableError(f"{where}: tests use {missing[0]}, which neither they nor the written solution define")
    return PythonTest(code=code, names=names, before=source.before, gives_names=source.gives_names)


def _imports_of_program(tree: ast.Module, source: PythonSource) -> list[ast.ImportFrom]:
    """Imports from the program's module, such as KodCode's `from solution import f`."""
    defined = source.solved
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and not node.level
        and node.module not in sys.stdlib_module_names
        and (node.module in MODULES_OF_PROGRAM or (node.module and {alias.name for alias in node.names} <= defined))
    ]


def _without(tree: ast.Module, imports: Sequence[ast.ImportFrom]) -> ast.Module:
    """The tests with names of the program instead of imports from it."""

    class Replaced(ast.NodeTransformer):
        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
            if node not in imports:
                return node
            renamed = [alias for alias in node.names if alias.asname not in (None, alias.name)]
            text = "; ".join(f"{alias.asname} = {alias.name}" for alias in renamed) or "pass"
            return ast.copy_location(ast.If(ast.Constant(True), ast.parse(text).body, []), node)

    return ast.fix_missing_locations(Replaced().visit(tree))


def _parsed(text: str, where: str, what: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{where}: {what}: not Python ({error})") from None


def _names_of_program(tree: ast.Module, given: set[str], source: PythonSource, where: str) -> tuple[str, ...]:
    """Names that the tests use and only the program defines."""
    entry_point = {source.entry_point} if source.entry_point is not None else set()
    known = (given | bound_names(ast.walk(tree)) | {RUNS_A_CLASS}) - entry_point
    loaded = loaded_names(tree)
    names = [name for name in loaded if name not in known and name not in OF_PYTHON]
    names = [name for name in names if name not in source.given] or names
    # A function with the name of a built-in, such as MBPP's `sum`.
    names = names or _called_by_pythons_name(tree, loaded, known, source)
    if not names:
        raise UnusableError(f"{where}: tests use nothing from the program")
    return tuple(sorted(set(names)))


def _called_by_pythons_name(tree: ast.Module, loaded: list[str], known: set[str], source: PythonSource) -> list[str]:
    if source.solution is not None:
        return [name for name in loaded if name in source.solved and name not in known]
    first = next((node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)), ast.Constant(True))
    calls = [node.func.id for node in ast.walk(first) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [name for name in calls if name not in known][:1]


def _imported(tree: ast.AST) -> set[str]:
    """Top-level packages imported by `tree`."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
    return found


def compared_calls(text: str, source: PythonSource) -> tuple[CallTest, ...] | None:
    """Calls and expected values of all assertions; None if one does more than compare a call with literals.

    They are exact, and may have any literals, where the tests run as written."""
    asserted = _asserted(ast.parse(text).body)
    if source.setup.strip() or asserted is None:
        return None
    tests = [_compared_call(test, source) for test in asserted]
    return tuple(test for test in tests if test is not None) if None not in tests else None


def _asserted(body: Sequence[ast.stmt]) -> list[ast.expr] | None:
    """Expressions asserted by statements that do nothing else; None if one does."""
    found: list[ast.expr] = []
    for node in body:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.Pass() | ast.Assert(test=ast.Constant(value=True)):
                continue
            case ast.Assert(test=test):
                found.append(test)
            case ast.FunctionDef(body=inner, decorator_list=[]) if (of_function := _asserted(inner)) is not None:
                found += of_function
            case ast.Assign(targets=[ast.Name(id="METADATA")]):
                continue
            case _:
                return None
    return found


def _compared_call(test: ast.expr, source: PythonSource) -> CallTest | None:
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id=name), args=args, keywords=[]), ops=[ast.Eq()], comparators=[value]
        ):
            is_exact = source.runs_as_written
            try:
                *given, expected = [ast.literal_eval(one) for one in (*args, value)]
                to_wire([*given, expected], refuse_value)
                if not is_exact and json.loads(json.dumps(given)) != given:  # a tuple, or a key 1
                    return None
            except (ValueError, TypeError, Unsendable):
                return None
            call = source.entry_point if source.entry_point and name == "candidate" else name
            return CallTest(call=call, args=tuple(given), expected=expected, is_exact=is_exact)
    return None
