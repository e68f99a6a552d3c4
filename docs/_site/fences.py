"""The indented blocks of a page as fenced ones with a language, so that the site colours them.

The pages keep them indented: that reads well in an editor, and tests run their commands (tests/pages.py).

>>> fenced("Try it:\\n\\n    platform list\\n")
'Try it:\\n\\n```bash\\nplatform list\\n```\\n'
"""

import ast
import json
import re
import textwrap
from collections.abc import Callable

import yaml

BLOCK = re.compile(r"(?<=\n\n)((?: {4}.*\n)+)")
FENCE = re.compile(r"^(```[^\n]*\n.*?^```$)", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:\.venv/bin/)?(?:platform|make|source|export|pip|python|mlflow|ssh|jupyter) ")
KEY = re.compile(r"\s*[\w.\"-]+:(?: |$)")
STATEMENT = re.compile(r"(?:import|from|def|class|@|for|with|if) ?\w")


def fenced(markdown: str) -> str:
    """The page with a fence around each indented block; blocks that are fenced already stay."""
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _fenced(part) for part in parts)


def _fenced(markdown: str) -> str:
    pieces = BLOCK.split(markdown)
    made: list[str] = []
    for place, piece in enumerate(pieces):
        code = textwrap.dedent(piece) if place % 2 else ""
        made.append(f"```{language(code)}\n{code}```\n" if code else piece)
    return "".join(made)


def language(code: str) -> str:
    """The language of a block, as Pygments calls it; `text` for what a command prints."""
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0] if lines else ""
    if COMMAND.match(f"{first} "):
        return "bash"
    if STATEMENT.match(first) and _is_read(ast.parse, code):
        return "python"
    if first.startswith("{") and _is_read(json.loads, code):
        return "json"
    return "yaml" if KEY.match(first) and _is_read(yaml.safe_load, code) else "text"


def _is_read(read: Callable[[str], object], code: str) -> bool:
    try:
        read(code)
    except (ValueError, SyntaxError, yaml.YAMLError):
        return False
    return True


def on_page_markdown(markdown: str, **of_page: object) -> str:
    """The hook of mkdocs."""
    return fenced(markdown)
