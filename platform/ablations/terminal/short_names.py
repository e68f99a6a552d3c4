"""Short names for the variants of a grid, made from their values. A study assigns these names, and every output shows
them.

>>> short_names(["scalerl", "loss.type=dapo,batch.prompts=32", "loss.type=grpo,batch.prompts=32"])
{'scalerl': 'scalerl', 'loss.type=dapo,batch.prompts=32': 'dapo,32', 'loss.type=grpo,batch.prompts=32': 'grpo,32'}

Names written by people contain neither a comma nor `=`, so a name with both was made from axes and values
(`ablations.study.forms`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping

LONG = 24
"""Length above which tables shorten a name, in characters."""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The short name of each variant; a name with at most one axis, or with a clashing short name, stays as it is."""
    names = [*dict.fromkeys(names)]
    short = {name: ",".join(value for _, value in parts) if (parts := axes_in(name)) else name for name in names}
    held = Counter([*short.values(), *(name for name in names if short[name] != name)])
    return {name: one if held[one] == 1 else name for name, one in short.items()}


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """The name that a study gives each variant: the short one if any name with several axes is long, else the full
    one."""
    names = [*dict.fromkeys(names)]
    is_long = any(len(name) > LONG and axes_in(name) for name in names)
    return short_names(names) if is_long else {name: name for name in names}


def legend(axes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Explain short names, given the axes of each variant: `dapo,32 and 7 more: values of loss.type, batch.prompts`."""
    called: dict[str, list[str]] = {}
    for name, values in axes.items():
        if len(values) > 1 and name == ",".join(values.values()):
            called.setdefault(", ".join(values), []).append(name)
    return [
        f"{members[0]}{f' and {len(members) - 1} more' if len(members) > 1 else ''}: values of {of}"
        for of, members in called.items()
    ]


def meant(typed: str, names: Iterable[str]) -> str:
    """The variant with this full or short name; the text itself if there is no such variant."""
    names = [*dict.fromkeys(names)]
    by_short = {short: name for name, short in short_names(names).items()}
    short = ",".join(value for _, value in axes_in(typed))
    return typed if typed in names else by_short.get(typed, short if short in names else typed)


def axes_in(name: str) -> list[tuple[str, str]]:
    """Axes and values in a name: `[("loss.type", "dapo"), ...]`; empty for one axis or a name that the user chose."""
    parts = [part.partition("=") for part in name.split(",")]
    return [(axis, value) for axis, _, value in parts] if len(parts) > 1 and all(sign for _, sign, _ in parts) else []
