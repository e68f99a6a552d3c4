"""docs/formats.md taken apart: the files of its tree, the names in its tables, examples and lists."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from places import REPOSITORY

PAGE = (REPOSITORY / "docs" / "formats.md").read_text()
NAMES = {"column", "field", "key"}
"""How the first column of a table is headed that names something in a file."""


@dataclass(frozen=True)
class Section:
    """The text under one heading."""

    text: str

    def after(self, start: str) -> "Section":
        """From these words on, whatever their line breaks."""
        found = re.search(re.escape(start).replace(r"\ ", r"\s+"), self.text)
        assert found, f"formats.md no longer says {start!r}"
        return Section(self.text[found.end() :])

    def table(self) -> dict[str, str]:
        """Every name in the first table of names, and what it means."""
        lines = iter(self.text.splitlines())
        next(line for line in lines if line.startswith("| ") and line.split("|")[1].strip() in NAMES)
        assert set(next(lines)) == set("|-")
        found: dict[str, str] = {}
        for line in lines:
            if not line.startswith("|"):
                break
            names, meaning = (cell.strip() for cell in line.strip("|").split("|", 1))
            for name in names.split(", "):
                assert name not in found, f"formats.md has {name} twice in one table"
                found[name] = meaning
        return found

    def example(self) -> Any:
        """The first indented block as JSON."""
        return json.loads("\n".join(self._block()))

    def outline(self) -> set[str]:
        """The top-level keys of the first indented block, which leaves values out: `{"sweep", "variants": [...]}`."""
        text = re.sub(r"\[[^\[\]]*\]|\{[^{}]*\}", "", "".join(self._block()).strip()[1:-1])
        return {re.findall(r'"(\w+)"', part)[0] for part in text.split(",")}

    def listed(self) -> set[str]:
        """The names of the first list, `one, two` (a remark) `, three`, which ends with its sentence."""
        without_remarks = re.sub(r"\([^()]*\)", "", self.text)
        sentence = re.split(r"[.;:](?=\s)|, a ", without_remarks, maxsplit=1)[0]
        return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", sentence))))

    def quoted(self) -> set[str]:
        """The names inside the first pair of backticks."""
        return set(re.findall(r"\w+", self.text.split("`")[1]))

    def _block(self) -> list[str]:
        block: list[str] = []
        for line in self.text.splitlines():
            if line.startswith("    "):
                block.append(line)
            elif block:
                break
        return block


def section(heading: str) -> Section:
    """The section under `## heading`."""
    (text,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    return Section(text)


def train_fields() -> tuple[set[str], set[str]]:
    """The fields that every train row has, and those of some recipes only."""
    table = section("`metrics.jsonl`").after("\n`train`: ").table()
    some = {name for name, meaning in table.items() if meaning.startswith("only ")}
    return table.keys() - some, some


def documented_field(name: str) -> str:
    """The name under which the page has a field of a row: that of each lag and task stands there once."""
    return re.sub(r"^mismatch_task_.*", "mismatch_task_name", re.sub(r"^mismatch_lag_-?\d+$", "mismatch_lag_n", name))


def tree() -> list[str]:
    """Every path of the home folder as the page writes it: `runs/<id>/`, `runs/<id>/recipe.json`, ..."""
    (heading,) = re.findall(r"^## (Home folder.*)$", PAGE, flags=re.MULTILINE)
    paths: list[str] = []
    folder = ""
    for line in section(heading)._block():
        indent = len(line) - len(line.lstrip())
        if indent > 6:
            continue
        names = re.split(r"  +", line.strip())[0].split(", ")
        paths += [(folder if indent == 6 else "") + name for name in names]
        if indent == 4:
            folder = names[0]
    return paths


def documented_as(path: Path, home: Path, paths: list[str]) -> str | None:
    """The entry of the page that a file of a home folder falls under; None without one.

    A folder that the page lists files of holds nothing else; in any other there may be anything.
    """
    relative = path.relative_to(home).as_posix()
    holders = {one for one in paths if any(other != one and other.startswith(one) for other in paths)}
    matching = [one for one in paths if one not in holders and re.match(_pattern(one), relative)]
    return max(matching, key=len) if matching else None


def _pattern(entry: str) -> str:
    pattern = re.sub(r"<\w+>", "[^/]+", re.escape(entry).replace(r"\<", "<").replace(r"\>", ">"))
    return pattern if entry.endswith("/") else pattern + r"\Z"
