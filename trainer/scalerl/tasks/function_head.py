"""Answers that leave out the head of a function which the row gives, as completions of HumanEval do.

    whole_program("    return a", "return a", head_in("def f(a):"))    "def f(a):\\n    return a\\n"

A head is Python that ends in a function without statements, alone or in a class: HumanEval's prompt, starter code of
APPS and LeetCode.
"""

import ast
import re
import textwrap
from dataclasses import dataclass

from scalerl.tasks.program_text import plain_answer, python_blocks, python_tree

_DEFINED = re.compile(r"^([ \t]*)(?:async )?def ", re.MULTILINE)
_METHOD = re.compile(r"^(?:async )?def (\w+)\(self\b", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class FunctionHead:
    """A text that ends in a function without statements; `owner` is the function's class, empty if it has none."""

    text: str
    function: str
    owner: str
    line: int
    """Line of the function in the text, from 1."""
    indent: str
    """Indentation of the function's statements."""


def head_in(text: str) -> FunctionHead | None:
    """The head that a text is; None for any other text."""
    lines = f"{plain_answer(text).rstrip()}\n"
    outer = _DEFINED.findall(lines)[-1:]
    for indent in (f"{one}{step}" for one in outer for step in ("    ", "\t", "  ")):
        tree = python_tree(f"{lines}{indent}pass")
        last = max(_functions(tree), key=lambda node: node.lineno, default=None)
        if tree and last and isinstance(last.body[-1], ast.Pass) and all(map(_says_nothing, last.body)):
            owner = "".join(node.name for node in tree.body if isinstance(node, ast.ClassDef) and last in node.body)
            return FunctionHead(text=lines, function=last.name, owner=owner, line=last.lineno, indent=indent)
    return None


def whole_program(answer: str, program: str, head: FunctionHead) -> str | None:
    """Program of an answer whose code, `program`, does not define the head's function; None if it does, or is no body.

    Code that returns a value is the function's body. A method without its class is put into one.
    """
    names, methods = "|".join(filter(None, (head.function, head.owner))), _METHOD.findall(program)
    if head.owner and head.function in methods and not re.search(rf"^class {head.owner}\b", program, re.MULTILINE):
        return "\n".join([program, "", f"class {head.owner}:", *(f"    {name} = {name}" for name in methods)])
    if re.search(rf"^(?:(?:async )?def|class) (?:{names})\b", program, re.MULTILINE):
        return None
    text = plain_answer(answer)
    for body in [*reversed(python_blocks(text))] or [text]:
        first, _, rest = textwrap.dedent(body).strip("\n").partition("\n")
        # The body as it stands, indented, and indented where its first line has lost its indentation.
        for inner in (
            body,
            *(textwrap.indent(f"{first}\n{one}", head.indent) for one in (rest, textwrap.dedent(rest))),
        ):
            whole = f"{head.text}{inner}\n"
            found = [node for node in _functions(python_tree(whole)) if node.lineno == head.line]
            if any(isinstance(node, ast.Return | ast.Yield) for one in found for node in ast.walk(one)):
                return whole
    return None


def _functions(tree: ast.Module | None) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(tree) if tree else ()
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
