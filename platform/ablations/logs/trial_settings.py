"""The settings of a trial of Ray Tune, which its scheduler may change while it trains."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.logs.row_values import flat, has_no_value

TRIAL, CONFIG = "trial_id", "config"
CHOICE = re.compile(r"[\w.+-]*")
"""A choice, such as `adamw`; paths and Python's names of objects may change with each attempt."""


def of_one_setting(
    rows: Iterable[tuple[str, Mapping[str, Any]]], path: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows, each with its place such as "line 7"; FileError if they are a trial's whose settings change.

    Population based training gives a trial the weights of a better one and new settings, and goes on in the same
    `result.json`: `{"trial_id": "1b6cb_00000", "config": {"lr": 0.05}, ...}` after an `lr` of 0.001.
    """
    first: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for where, row in rows:
        trial, config = row.get(TRIAL), row.get(CONFIG)
        if isinstance(trial, str) and isinstance(config, Mapping):
            begun = first.setdefault(trial, (where, config))
            if config != begun[1]:
                _refuse_changed(begun, (where, config), path)
        yield where, row


def _refuse_changed(first: tuple[str, Mapping[str, Any]], here: tuple[str, Mapping[str, Any]], path: Path) -> None:
    before = dict(flat(first[1]))
    for name, value in flat(here[1]):
        if name in before and _is_setting(value) and _is_setting(before[name]) and value != before[name]:
            raise Place(source=str(path)).error(
                f"{CONFIG}/{name} is {before[name]} in {first[0]} and {value} in {here[0]}, so that the curve is of no "
                "one recipe",
                "name trials whose settings stay; population based training (PBT) moves weights and settings from "
                "trial to trial",
            )


def _is_setting(value: Any) -> bool:
    """True for a number and a word."""
    if has_no_value(value):
        return False
    return CHOICE.fullmatch(value) is not None if isinstance(value, str) else isinstance(value, int | float)
