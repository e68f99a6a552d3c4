"""The command that shows the designs of a sweep, and whether it would know the scale. Light, as a dry run says both."""

import shlex
from collections.abc import Iterator
from contextlib import suppress

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.started_sweep import read_sweep

KEPT, WITH_VALUE = ("--scale", "--set", "--budget", "--home"), ("--executor", "--jobs", "--after", "--tracking-uri")


def design_command(plan: Plan) -> str:
    """The command that shows the designs of a sweep: its own command with another verb and without other options."""
    words = shlex.split(plan.command)
    if words[:2] != ["platform", "sweep"]:
        return "platform design FILE"
    kept, rest = ["platform", "design"], iter(words[2:])
    for word in rest:
        if word in KEPT:
            kept += [word, next(rest, "")]
        elif word in WITH_VALUE:
            next(rest, "")
        elif not word.startswith("--") or word.startswith(tuple(f"{option}=" for option in KEPT)):
            kept.append(word)
    return shlex.join(kept)


def plans_of(home: Home, scale: str) -> Iterator[Plan]:
    """The plans of this scale, the sweep last started first; those of other versions that cannot be read left out."""
    for name in home.sweep_names():
        with suppress(AblationsError):
            plan = read_sweep(home, name).plan
            if plan.scale == scale:
                yield plan
