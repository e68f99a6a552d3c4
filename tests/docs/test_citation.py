"""CITATION.cff by the rules of the Citation File Format 1.2.0, as far as it uses them."""

import re
import tomllib
from typing import Any

import pytest
import yaml
from places import REPOSITORY

import ablations

# https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema-guide.md
REQUIRED = {"authors", "cff-version", "message", "title"}
OPTIONAL = {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license", "license-url",
    "preferred-citation", "references", "repository", "repository-artifact", "repository-code", "type", "url",
    "version",
}  # fmt: skip
OF_REFERENCES = {"authors", "title", "type", "year", "doi", "url", "journal", "abstract"}
"""Keys of a reference that we may use; the format requires the first three."""
DOI = re.compile(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+")


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())


def test_it_has_the_required_keys_and_only_those_of_the_format(citation):
    assert citation.keys() >= REQUIRED
    assert citation.keys() <= REQUIRED | OPTIONAL
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    texts = ("message", "title", "abstract", "version", "license")
    assert all(isinstance(citation[key], str) and citation[key] for key in texts)
    assert len(citation["keywords"]) == len(set(citation["keywords"])) > 0


def test_everyone_named_is_a_person_or_an_entity(citation):
    everyone = citation["authors"] + [author for one in citation["references"] for author in one["authors"]]
    assert all(author.keys() in ({"name"}, {"given-names", "family-names"}) for author in everyone)


def test_references_have_what_the_format_requires(citation):
    for reference in citation["references"]:
        assert {"authors", "title", "type"} <= reference.keys() <= OF_REFERENCES
        assert isinstance(reference["year"], int)
        assert DOI.fullmatch(reference["doi"])


def test_version_and_license_are_those_of_the_package(citation):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (ablations.__version__, project["license"])
