"""CITATION.cff by the rules of the Citation File Format 1.2.0, as far as it uses them."""

import re
import tomllib

import yaml
from places import REPOSITORY

import ablations

DOI = re.compile(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+")


def test_it_cites_this_version_and_what_it_rests_on():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (ablations.__version__, project["license"])
    assert citation["cff-version"] == "1.2.0"
    assert citation.keys() >= {"authors", "cff-version", "message", "title"}  # which the format requires
    for reference in citation["references"]:
        assert reference.keys() >= {"authors", "title", "type"}
        assert DOI.fullmatch(reference["doi"])
