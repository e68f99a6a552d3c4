"""Lists the settings in which two resolved recipes differ.

>>> recipe_differences(load_resolved("scalerl", "smoke"), load_resolved("baseline", "smoke"))
[RecipeDifference(path='loss.type', left='cispo', right='dapo'), ...]
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ablations.study.override import plain_settings
from ablations.text import setting_text
from scalerl.credentials import values_without_secrets
from scalerl.recipe.command import AnyRecipe

ABSENT = "-"
"""Text for a setting that only one of the two recipes has, for example because their loss types differ."""


@dataclass(frozen=True, kw_only=True)
class RecipeDifference:
    """One setting with both values as text: RecipeDifference(path="batch.prompts", left="48", right="24")."""

    path: str
    left: str
    right: str


def recipe_differences(left: AnyRecipe, right: AnyRecipe) -> list[RecipeDifference]:
    """Every setting whose values differ, in recipe order."""
    ours, theirs = dict(_settings(plain_settings(left))), dict(_settings(plain_settings(right)))
    mine, others = values_without_secrets(ours), values_without_secrets(theirs)
    return [
        RecipeDifference(path=path, left=mine.get(path, ABSENT), right=others.get(path, ABSENT))
        for path in {**ours, **theirs}
        if ours.get(path, ABSENT) != theirs.get(path, ABSENT)
    ]


def recipe_settings(recipe: AnyRecipe) -> dict[str, str]:
    """The value of every setting as text, by dotted path, in recipe order; for a program, the settings of its
    configuration.

    The folder of a user's own function is left out: every run has its copy, and the hashes show any difference.
    Passwords are hidden.
    """
    return values_without_secrets(dict(_settings(plain_settings(recipe))))


def _settings(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{above}{name}.")
        elif not (name == "folder" and "folder_sha256" in tree):
            yield f"{above}{name}", setting_text(value)
