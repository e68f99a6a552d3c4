"""Every command, option and make target that a page mentions exists."""

import re

import pytest
from pages import PAGES, mentioned
from places import REPOSITORY

from ablations.cli import app
from ablations.cli.reference import parameters_of

OPTIONS = {
    one.name or one.callback.__name__: {
        name
        for parameter in parameters_of(one.callback)
        if not parameter.is_argument
        for name in parameter.usage().split(", ")
    }
    | {"--help"}
    for one in app.registered_commands
    if one.callback is not None
}
TARGETS = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def calls(page):
    """Every command of the page with the options that follow it: `("sweep", {"--scale"})`."""
    for text in mentioned(page):
        for call in re.findall(r"(?<![\w./])(?:\.venv/bin/)?platform ((?:(?!\bplatform )[^#|`])*)", text):
            command, *rest = call.split()
            if re.fullmatch(r"[a-z]+", command):
                yield command, {word for word in rest if re.fullmatch(r"-w|-f|--[a-z-]+", word)}


def targets(page):
    """What `make` is told to make."""
    return {name for text in mentioned(page) for name in re.findall(r"(?:^|[^\w])make ([a-z-]+)", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_commands_and_options_exist(page):
    for command, options in calls(page):
        assert command in OPTIONS, f"platform {command}"
        assert options <= OPTIONS[command], f"platform {command}: {options - OPTIONS[command]}"
    assert targets(page) <= TARGETS


def test_what_is_checked_is_what_the_pages_mention():
    assert ("sweep", {"--scale"}) in list(calls(REPOSITORY / "README.md"))
    assert ("forecast", {"--budget", "--score"}) in list(calls(REPOSITORY / "docs/tutorial.md"))
    assert {"install", "demo", "check"} <= targets(REPOSITORY / "README.md")
