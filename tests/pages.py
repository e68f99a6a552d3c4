"""The pages that people read: what they mention, and their blocks of commands, files and output."""

import re
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path

from places import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
COMMANDS = ("platform", "make", "source", "export", "pip", "python", "mlflow", "ssh")
"""Words that a line with a command begins with, also after `.venv/bin/`."""
CODE = re.compile(r"^```\w*\n((?:.*\n)*?)```$|(?<=\n\n)((?: {4}.*\n)+)", re.MULTILINE)
CALL = re.compile(rf"(?:\.venv/bin/)?(?:{'|'.join(COMMANDS)}) ")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Code of a page without its indentation, up to a blank line: `Block(line=29, text="make install\\n")`."""

    line: int
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands without comments, `platform list`; a line may have several, three blanks apart."""
        lines = self.text.replace("\\\n", " ").splitlines()
        parts = [part.strip() for line in lines for part in re.split(r" {3,}(?=platform )", line)]
        return [shlex.join(shlex.split(part, comments=True)) for part in parts if CALL.match(f"{part} ")]


def blocks(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    text = page.read_text()
    found = [(text.count("\n", 0, one.start()) + 1, one[1] or one[2]) for one in CODE.finditer(text)]
    return [Block(line=line, text=textwrap.dedent(block)) for line, block in found]


def mentioned(page: Path) -> list[str]:
    """What stands between single backticks and in indented blocks of code."""
    text = page.read_text()
    return re.findall(r"`([^`\n]+)`", text) + re.findall(r"^    (.+)$", text, re.MULTILINE)
