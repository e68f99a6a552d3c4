"""The pages that people read, and what they mention."""

import re
from pathlib import Path

from places import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def mentioned(page: Path) -> list[str]:
    """What stands between single backticks and in indented blocks of code."""
    text = page.read_text()
    return re.findall(r"`([^`\n]+)`", text) + re.findall(r"^    (.+)$", text, re.MULTILINE)
