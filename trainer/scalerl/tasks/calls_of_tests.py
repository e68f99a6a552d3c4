"""Adds the calls that make the assertions in Python tests run: of functions, test classes, `check(candidate)`.

Test files leave the calls to pytest, unittest or a grader; without them no assertion runs, and every program would be
right.
"""

import ast
from collections import Counter

from scalerl.tasks.program_text import loaded_names
from scalerl.tasks.text_task import UnusableError

RUNS_A_CLASS = "run_test_class"
"""Function with which the test process runs a test class (`scalerl.verifiers.programs.python_test_processes`)."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def calls_of_tests(tree: ast.Module, entry_point: str | None, where: str) -> list[str]:
    """Lines that call tests that are never called; raises UnusableError if an assertion would still not run."""
    mentioned = Counter(loaded_names(tree))
    lines: list[str] = []
    for name, count in Counter(_name(node) for node in tree.body if _holds_tests(node)).items():
        if count > 1 and name:
            raise UnusableError(f"{where}: tests define {name!r} {count} times; all but the last would be lost")
    local = {_name(node) for node in tree.body} - {""}
    for node in tree.body:
        name = _name(node)
        if isinstance(node, ast.ClassDef) and _is_test_class(node):
            lines.append(f"{RUNS_A_CLASS}({name})")
        elif not name or mentioned[name] > Counter(loaded_names(node))[name]:
            continue
        elif isinstance(node, ast.ClassDef):
            if has_assertion(node):
                raise UnusableError(f"{where}: the class {name!r} contains an assertion but is never used")
        elif isinstance(node, Function) and (_holds_tests(node) or local & set(loaded_names(node))):
            lines += _call(node, entry_point, where)
    return lines


def has_assertion(tree: ast.AST) -> bool:
    """True if anything is asserted: by a statement, or by a method of unittest or similar."""
    nodes = list(ast.walk(tree))
    called = [node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return any(isinstance(node, ast.Assert) for node in nodes) or any(name.startswith("assert") for name in called)


def _holds_tests(node: ast.stmt) -> bool:
    return bool(_name(node)) and (_name(node).startswith("test") or has_assertion(node))


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, Function | ast.ClassDef) else ""


def _is_test_class(node: ast.ClassDef) -> bool:
    """True if pytest or unittest would run the class."""
    is_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
    has_tests = any(isinstance(one, Function) and one.name.startswith("test") for one in node.body)
    return has_tests and (is_case or node.name.startswith("Test"))


def _call(node: Function, entry_point: str | None, where: str) -> list[str]:
    """Call of an uncalled function: without arguments, or with the program's function as its candidate."""
    arguments = node.args
    required = [*arguments.posonlyargs, *arguments.args]
    required = required[: len(required) - len(arguments.defaults)]
    required += [arg for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is None]
    given = f"({entry_point})" if len(required) == 1 and entry_point is not None else "()"
    is_candidate = len(required) == 1 and (node.name == "check" or required[0].arg == "candidate")
    if required and not (is_candidate and entry_point is not None):
        wanted = ", ".join(arg.arg for arg in required)
        raise UnusableError(f"{where}: the tests in {node.name!r} are never called; it needs {wanted}")
    if isinstance(node, ast.AsyncFunctionDef):
        return ["import asyncio", f"asyncio.run({node.name}{given})"]
    return [f"{node.name}{given}"]
