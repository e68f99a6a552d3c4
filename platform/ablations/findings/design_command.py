"""The command that lists the designs of a sweep. This module imports little, since a dry run prints this command."""

import shlex

from ablations.home.labels import Labels

KEPT_OPTIONS, WITH_VALUE = (
    ("--scale", "--set", "--budget", "--home"),
    ("--executor", "--jobs", "--after", "--tracking-uri"),
)


def design_command(plan: Labels) -> str:
    """The sweep's own command with the verb `design`, reduced to the options in `KEPT_OPTIONS`."""
    words = shlex.split(plan.command)
    if words[:2] != ["platform", "sweep"]:
        return "platform design FILE"
    kept, rest = ["platform", "design"], iter(words[2:])
    for word in rest:
        if word in KEPT_OPTIONS:
            kept += [word, next(rest, "")]
        elif word in WITH_VALUE:
            next(rest, "")
        elif not word.startswith("--") or word.startswith(tuple(f"{option}=" for option in KEPT_OPTIONS)):
            kept.append(word)
    return shlex.join(kept)
