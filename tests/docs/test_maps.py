"""The text of every folder's `__init__.py` is its map: it names every file, and no file that does not exist.

The text is the docstring; of `ablations` also the string below `__all__`, since its docstring is what `help` shows.
"""

import ast
import re

import pytest
from places import REPOSITORY

ROOMS = sorted(
    init.parent
    for package in ("platform/ablations", "trainer/scalerl", "dashboard/ablations_dashboard")
    for init in (REPOSITORY / package).rglob("__init__.py")
)
ENTRY = re.compile(r"^ *((?:[a-z_/]+(?:\.py)?)(?:(?:, | \| )[a-z_/]+(?:\.py)?)*) {2,}\S", re.MULTILINE)
"""A line of a map: one or more names, two blanks, and what they are."""


def map_of(room):
    tree = ast.parse((room / "__init__.py").read_text())
    alone = [one.value for one in tree.body if isinstance(one, ast.Expr)]
    return "\n".join(str(one.value) for one in alone if isinstance(one, ast.Constant))


def named(room):
    """The names that stand at the beginning of a line of the map."""
    return {name for entry in ENTRY.findall(map_of(room)) for name in re.split(r", | \| ", entry)}


def public(room):
    """What `import ablations` itself offers; its map lists these names before the rooms."""
    tree = ast.parse((room / "__init__.py").read_text())
    lists = [one.value for one in tree.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "MODULES"]
    return {name for one in lists for name in ast.literal_eval(one)}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(REPOSITORY).as_posix())
def test_a_map_names_what_is_there(room):
    files = {path.stem for path in room.glob("*.py") if not path.name.startswith("__")}
    rooms = {path.parent.name for path in room.glob("*/__init__.py")}
    words = set(re.findall(r"\w+", map_of(room)))
    assert files | rooms <= words, "the map leaves these out"
    missing = {name for name in named(room) - public(room) if not any(room.glob(f"{name.removesuffix('.py')}*"))}
    assert not missing, "the map names what is not there"
