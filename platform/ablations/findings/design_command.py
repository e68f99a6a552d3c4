"""The command that shows the designs of a sweep. Light, as a dry run names it."""

import shlex

from ablations.home.labels import Labels

KEPT_OPTIONS, WITH_VALUE = (
    ("--scale", "--set", "--budget", "--home"),
    ("--executor", "--jobs", "--after", "--tracking-uri"),
)


def design_command(plan: Labels) -> str:
    """The command that shows the designs of a sweep: its own command with another verb and without other options."""
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
