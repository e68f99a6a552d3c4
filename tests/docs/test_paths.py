"""Every file and every Python name that a page mentions in backticks exists."""

import ast
import re

import pytest
from pages import PAGES, mentioned
from places import REPOSITORY

FOLDERS = ("benchmarks", "dashboard", "docs", "platform", "recipes", "sweeps", "tests", "trainer")
PACKAGES = {
    "ablations": REPOSITORY / "platform",
    "ablations_dashboard": REPOSITORY / "dashboard",
    "scalerl": REPOSITORY / "trainer",
}


def paths(page):
    """Paths below one of the repository's folders; a pattern such as `recipes/*.yaml` counts as its folder."""
    found = {
        path for text in mentioned(page) for path in re.findall(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./*-]*", text)
    }
    return {path.rstrip(".") for path in found}


def names(page):
    """Dotted names below one of the packages, such as `scalerl.run.health`."""
    return {
        name
        for text in mentioned(page)
        for name in re.findall(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+", text)
    }


def is_defined(name):
    """Whether a dotted name is a folder, a file, or something at the top of a file or of one of its classes."""
    package, *parts = name.split(".")
    place = PACKAGES[package] / package
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").exists():
        place = place / f"{parts.pop(0)}.py"
    elif parts:
        place = place / "__init__.py"
    body = ast.parse(place.read_text()).body if parts else []
    for part in parts:
        within = [one for one in body if part in defined_by(one)]
        if not within:
            return False
        body = getattr(within[0], "body", [])
    return True


def defined_by(statement):
    """The names that one statement binds."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.ImportFrom | ast.Import):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, ast.If):
        return {name for inner in statement.body for name in defined_by(inner)}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_files_and_names_exist(page):
    missing = [path for path in sorted(paths(page)) if not any(REPOSITORY.glob(path.rstrip("/")))]
    missing += [name for name in sorted(names(page)) if not is_defined(name)]
    assert not missing


def test_what_is_checked_is_what_the_pages_mention():
    assert {"trainer/scalerl/recipe/axes.py", "tests/trainer/reference_loss.py"} <= paths(
        REPOSITORY / "CONTRIBUTING.md"
    )
    assert {"scalerl.schedules.pipeline", "scalerl.run.health"} <= names(REPOSITORY / "docs/design.md")
    assert is_defined("ablations.fit.curve.Curve")
    assert is_defined("scalerl.recipe.Cispo")
    assert is_defined("ablations.open_sweep")
    assert not is_defined("ablations.fit.curve.Kurve")
    assert not is_defined("scalerl.trainer")
