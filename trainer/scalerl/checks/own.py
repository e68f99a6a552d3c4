"""Tries the user's own functions on made-up values."""

from collections.abc import Callable, Iterator

from scalerl.checks.finding import Finding
from scalerl.checks.own_process import tried_once
from scalerl.checks.subject import Subject
from scalerl.recipe import CustomTask


def check_own(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields a line for each function of the user's own: what is wrong with it, or how long it takes."""
    for setting, own in subject.recipe.own.items():
        say(f"trying {own.function}")
        yield tried_once("task" if isinstance(own, CustomTask) else setting, own)
