"""The values of a row as trainers write them: flattens nested names and recognises numbers."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ablations.errors import AblationsError
from ablations.fit.table_file import MISSING
from ablations.logs.packed import TextOf

LONGEST_MISSING = max(map(len, MISSING))


def flat(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, with the names of all levels joined by a slash."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


class TwoValues(TextOf):
    """The two values of a name that occurs twice in a row; no column can hold both: `TwoValues("0.5 and 0.8")`."""


def one_each(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The values by name; for a name that occurs twice, the value that is not missing, or TwoValues if they differ."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in found or has_no_value(found[name]) or found[name] == value:
            found[name] = value
        elif isinstance(value, Mapping) and isinstance(found[name], Mapping):
            found[name] = one_each([*found[name].items(), *value.items()])
        elif not has_no_value(value):
            found[name] = TwoValues(f"{found[name]} and {value}")
    return found


def one_each_of_json(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; fast if no name occurs twice."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else one_each(pairs)


def as_number(value: Any) -> float | None:
    """A logged number, which may be text such as "NaN"; None for anything else."""
    try:
        # float() would read 1_0 as 10.
        return float(value.replace("_", "?") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None


class NoNumber(AblationsError):
    """A value in a column is a text."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def number_of(value: Any) -> float | None:
    """A number as it was logged; None for a missing one, NoNumber for a text."""
    if value is None or (isinstance(value, str) and value.casefold() in MISSING):
        return None
    if (number := as_number(value)) is None:
        raise NoNumber(value)
    return number


def has_no_value(value: Any) -> bool:
    """True for a value that is missing, and for NaN."""
    if isinstance(value, str):
        return value.casefold() in MISSING if len(value) <= LONGEST_MISSING else False
    return value is None or value != value


def time_of(value: Any) -> float | None:
    """A logged time in seconds since 1970, which may be text such as 2026-11-20T10:15:00; None for anything else."""
    if isinstance(value, str) and as_number(value) is None:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return as_number(value)
