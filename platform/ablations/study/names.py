"""The values of an axis or a search, as written in a sweep file: a list, or named sets of overrides.

loss.type: [cispo, dapo]
batch: {small: {batch.prompts: 8}, large: {batch.prompts: 32, optimiser.learning_rate: {times: 2}}}
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from ablations.files.source import shown_value


def label(value: str | int | float | bool) -> str:
    """A value as part of a variant's name, written as in YAML: `true`, `64`, `0.1`, `grpo`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def nameable(name: str) -> str:
    """The name unchanged; raises ValueError if it cannot be one."""
    allowed = all(character.isascii() and (character.isalnum() or character in "._+-") for character in name)
    if not (allowed and name[:1].isalnum() and len(name) <= 64):
        right = "a name has up to 64 letters, digits and . _ + -, and starts with a letter or digit"
        raise ValueError(f"{name!r} is not a name; {right}")
    return name


def unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values unchanged; ValueError if two of them have the same label."""
    labels = [label(value) for value in values]
    if twice := [name for position, name in enumerate(labels) if name in labels[:position]]:
        raise ValueError(f"{twice[0]} is listed twice; list each value once")
    return values


def _names_itself(value: Any) -> Any:
    if isinstance(value, dict | list) or value is None:
        raise ValueError(f"found {shown_value(value)}; must be a number or a word; give any other value a name")
    return nameable(value) if isinstance(value, str) else value


def told_apart(tags: Mapping[type, str], right: str) -> Discriminator:
    """The members of a union told apart by the type of what is written: its tag is the tag of the first type that fits.

    `right` is the message for anything else.
    """

    def tag_of(written: Any) -> str | None:
        return next((tag for kind, tag in tags.items() if isinstance(written, kind)), None)

    return Discriminator(tag_of, custom_error_type="form", custom_error_message=right)


LISTED = {list: "listed", tuple: "listed"}
Name = Annotated[str, AfterValidator(nameable)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Overrides = Annotated[dict[str, Any], Field(min_length=1)]
"""Dotted paths of the resolved recipe to values (`ablations.study.override`)."""
Named = Annotated[dict[Name, Overrides], Field(min_length=1)]
Label = Annotated[Any, AfterValidator(_names_itself)]
Listed = Annotated[tuple[Label, ...], Field(min_length=1), AfterValidator(unique)]
Values = Annotated[
    Annotated[Named, Tag("named")] | Annotated[Listed, Tag("listed")],
    told_apart({dict: "named", **LISTED}, "must be a list of values, or `name: {path: value}` for each of them"),
]
"""The values of an axis: named sets of overrides, or a list of values for the path that names the axis."""
