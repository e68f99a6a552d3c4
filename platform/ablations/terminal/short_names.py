"""Variants of a grid by their values.

>>> short_names(["scalerl", "loss.type=dapo,batch.prompts=32", "loss.type=grpo,batch.prompts=32"])
{'scalerl': 'scalerl', 'loss.type=dapo,batch.prompts=32': 'dapo,32', 'loss.type=grpo,batch.prompts=32': 'grpo,32'}

Names that people wrote hold neither comma nor `=`, so a name that has both was made from axes and values
(`ablations.study.forms`).
"""

from collections import Counter
from collections.abc import Iterable

LONG = 24
"""Characters of a name from which tables show the short ones."""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """What each variant may be called for short; names of one axis or none, and those that would clash, stay as are."""
    names = [*dict.fromkeys(names)]
    short = {name: ",".join(value for _, value in parts) if (parts := axes_in(name)) else name for name in names}
    held = Counter([*short.values(), *(name for name in names if short[name] != name)])
    return {name: one if held[one] == 1 else name for name, one in short.items()}


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """What tables call each variant: the short names where one of several axes is long, else the names."""
    names = [*dict.fromkeys(names)]
    is_long = any(len(name) > LONG and axes_in(name) for name in names)
    return short_names(names) if is_long else {name: name for name in names}


def legend(names: Iterable[str]) -> list[str]:
    """What the short names of a table leave out: `dapo,32,2048 and 7 more: loss.type, batch.prompts, length`."""
    axes: dict[str, list[str]] = {}
    for name, short in shown_names(names).items():
        if short != name:
            axes.setdefault(", ".join(axis for axis, _ in axes_in(name)), []).append(short)
    return [
        f"{members[0]}{f' and {len(members) - 1} more' if len(members) > 1 else ''}: values of {of}"
        for of, members in axes.items()
    ]


def meant(typed: str, names: Iterable[str]) -> str:
    """The variant that was typed by its name or its short one; the text itself where there is none such."""
    names = [*dict.fromkeys(names)]
    by_short = {short: name for name, short in short_names(names).items()}
    return typed if typed in names else by_short.get(typed, typed)


def axes_in(name: str) -> list[tuple[str, str]]:
    """`[("loss.type", "dapo"), ("batch.prompts", "32")]`; empty for a name of one axis, or that a person wrote."""
    parts = [part.partition("=") for part in name.split(",")]
    return [(axis, value) for axis, _, value in parts] if len(parts) > 1 and all(sign for _, sign, _ in parts) else []
