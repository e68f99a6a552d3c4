"""What a page mentions exists: files, Python names, commands and options, make targets, and where README links."""

import re
from pkgutil import resolve_name

import pytest
from pages import PAGES, mentioned
from places import REPOSITORY

from ablations.cli.reference import COMMANDS_BY_NAME, commands_page
from ablations.study.reference import sweep_reference
from scalerl.recipe.reference import settings_page

README = REPOSITORY / "README.md"
FOLDERS = "benchmarks|dashboard|docs|platform|recipes|sweeps|tests|trainer"
OPTIONS = {
    name: {"--help", *(option for one in command.params for option in one.opts)}
    for name, command in COMMANDS_BY_NAME.items()
}
TARGETS = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def found(page, pattern):
    """What matches in the code of a page."""
    return [match for text in mentioned(page) for match in re.findall(pattern, text)]


def paths(page):
    """Paths below one of the repository's folders; a pattern such as `recipes/*.yaml` counts as its folder."""
    return {path.rstrip(".") for path in found(page, rf"(?<![\w./-])(?:{FOLDERS})/[\w./*-]*")}


def names(page):
    """Dotted names below one of the packages, such as `scalerl.run.health`."""
    return set(found(page, r"(?<![\w./-])(?:ablations|ablations_dashboard|scalerl)(?:\.\w+)+"))


def is_defined(name):
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def calls(page):
    """Every command of the page with the options that follow it: `("sweep", {"--scale"})`."""
    for call in found(page, r"(?<![\w./])(?:\.venv/bin/)?platform ((?:(?!\bplatform )[^#|`])*)"):
        command, *rest = call.split()
        if re.fullmatch(r"[a-z]+", command):
            yield command, {word for word in rest if re.fullmatch(r"-w|-f|--[a-z-]+", word)}


@pytest.mark.parametrize("made", [commands_page, settings_page, sweep_reference])
def test_what_a_page_from_the_code_mentions_exists(made, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(made())
    test_what_a_page_mentions_exists(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_what_a_page_mentions_exists(page):
    missing = [path for path in sorted(paths(page)) if not any(REPOSITORY.glob(path.rstrip("/")))]
    missing += [name for name in sorted(names(page)) if not is_defined(name)]
    missing += [call for call in calls(page) if not call[1] <= OPTIONS.get(call[0], set())]
    missing += [command for command, _ in calls(page) if command not in OPTIONS]
    missing += sorted(set(found(page, r"(?:^|[^\w])make ([a-z-]+)")) - TARGETS)
    assert not missing


def test_links_of_the_readme_lead_somewhere():
    # The site is built from all other pages, and a link there that leads nowhere is an error.
    links = [link for link in re.findall(r"\]\(([^)\s#]+)", README.read_text()) if "://" not in link]
    assert "docs/statistics.md" in links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
    for path, anchor in re.findall(r"\]\(([^)\s#]+)#([^)\s]+)\)", README.read_text()):
        headings = re.findall(r"^#+ (.*)$", (REPOSITORY / path).read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]
