"""Every relative link of every page leads to a file that exists, and to a heading that it has."""

import re

import pytest
from places import REPOSITORY

PAGES = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links(page):
    """Targets of the links and pictures of a page that stay in this repository."""
    return [target for target in LINK.findall(page.read_text()) if "://" not in target]


def anchors(page):
    """What a page's headings are called in links: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(REPOSITORY), f"{target} leaves the repository"
        assert file.exists(), f"{target} leads nowhere"
        assert not anchor or anchor in anchors(file), f"{path or page.name} has no heading #{anchor}"


def test_the_links_that_are_checked_are_those_of_the_pages():
    assert {"docs/formats.md", "docs/statistics.md"} <= set(links(REPOSITORY / "README.md"))
    assert "the-way-of-one-sweep" in anchors(REPOSITORY / "docs/design.md")
