"""docs/formats.md names every key that the commands print."""

import json
import re

import pytest
from fixtures_home import make_home
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
from ablations.fit.curve import COLUMNS

FORMATS = (REPOSITORY / "docs" / "formats.md").read_text()


def section(title: str) -> set[str]:
    """The words of one section."""
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", FORMATS, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\w+", text))


def keys(value) -> set[str]:
    """Every key inside a JSON value."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The home of a finished sweep."""
    path = tmp_path_factory.mktemp("home")
    make_home(path)
    return str(path)


@pytest.mark.parametrize(
    ("command", "title", "others"),
    [
        (["fit", "loo", "--explain", "--json"], "`platform fit --json`", []),
        (["compare", "loo", "--json"], "`platform compare --json`", ["`platform fit --json`"]),
        (["status", "loo", "--json"], "`platform status --json`", []),
        (["compare", "loo", "--paper", "--json"], "`platform compare --paper --json`", []),
    ],
)
def test_every_key_of_json_output_is_documented(home, command, title, others):
    result = CliRunner().invoke(app, [*command, "--home", home], catch_exceptions=False)
    known = section(title).union(*map(section, others))
    found = keys(json.loads(result.stdout))
    assert len(found) > 20
    assert found - known == set()


def test_every_column_that_is_read_is_documented():
    assert set(COLUMNS) - section("The CSV file of `platform fit`") == set()
