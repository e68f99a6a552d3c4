"""Checks that the tests of a problem reject wrong programs.

    empty program       defines and prints nothing
    returns None        every function that the tests call returns None
    negated             the written solution, with the last return value of a called function negated

Checks that run no program are made when a row is read. The programs run only in `platform check`: 0.1 to 0.15 s per row
on two cores, three times as long as judging its written answer, which is the fourth part of the proof.
"""

import ast
from collections.abc import Sequence

from scalerl.tasks.program_text import python_tree
from scalerl.tasks.text_task import UnusableError
from scalerl.verifiers.programs.code_tests import CallTest, CodeTest, normal_lines
from scalerl.verifiers.programs.python_tests import PythonTest

Tests = Sequence[CodeTest] | PythonTest


def refuse_what_proves_nothing(tests: Tests, where: str) -> None:
    """Raises UnusableError if an empty program, or one that returns None, would clearly pass."""
    if isinstance(tests, PythonTest):
        return
    if all(test.expected is None if isinstance(test, CallTest) else not normal_lines(test.stdout) for test in tests):
        what = "every call" if isinstance(tests[0], CallTest) else "every input"
        raise UnusableError(f"{where}: {what} expects nothing, so a program that does nothing would be right")


def wrong_programs(tests: Tests, solution: str) -> dict[str, str]:
    """Programs that no tests should accept, by description; `solution` is empty if none is written."""
    called = names_called(tests)
    wrong = {"an empty program": "pass"}
    if called:
        wrong["a program that returns None"] = "\n".join(_gives_none(name) for name in called)
    if solution and called and (negated := _negated(solution, called)):
        wrong["the solution with its last return negated"] = negated
    return wrong


def names_called(tests: Tests) -> list[str]:
    """Names that the tests call, such as `add` or `Solution.add`."""
    if isinstance(tests, PythonTest):
        return list(tests.names)
    return list(dict.fromkeys(test.call for test in tests if isinstance(test, CallTest)))


def _gives_none(call: str) -> str:
    owner, _, name = call.rpartition(".")
    if owner:
        return f"class {owner}:\n    def {name}(self, *_, **__):\n        return None"
    return f"def {name}(*_, **__):\n    return None"


def _negated(solution: str, called: Sequence[str]) -> str | None:
    """The solution with the last value returned by a called function negated; None if there is no such value."""
    if (tree := python_tree(solution)) is None:
        return None
    names = {name.rpartition(".")[2] for name in called}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
    returns = [node for one in functions for node in ast.walk(one) if isinstance(node, ast.Return) and node.value]
    if not returns:
        return None
    last = max(returns, key=lambda node: node.lineno)
    assert last.value is not None
    last.value = ast.UnaryOp(ast.Not(), last.value)
    return ast.unparse(ast.fix_missing_locations(tree))
