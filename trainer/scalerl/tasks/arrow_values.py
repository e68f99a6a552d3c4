"""Values of Arrow columns as Python's values: JSON decoded, and numbers of 32 or 16 bits in their shortest text.

A column of Arrow's JSON type holds each of its values as a JSON text: the text two as "two" in quotation marks.
`datasets` from 4.7 makes such columns where values have several types, and DuckDB from its own JSON type. A library
that does not know the type leaves its name beside the field, or the feature of `datasets` beside the table.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scalerl.tasks.written_json import decoded_cell, single

Read = Callable[[Any], Any]
JSON_TYPE = "arrow.json"


def plain_values(schema: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Function from a row of the schema as `to_pylist` gives it; raises ValueError for a cell that is not JSON."""
    about = json.loads((schema.metadata or {}).get(b"huggingface", "{}"))
    reads = _reads(schema, (about.get("info") or {}).get("features") or {})

    def plain(values: dict[str, Any]) -> dict[str, Any]:
        for name, read in reads.items():
            try:
                values[name] = read(values[name])
            except ValueError as error:
                raise ValueError(f"column {name!r} is of Arrow's JSON type, but {error}") from None
        return values

    return plain


def _reads(fields: Iterable[Any], features: Mapping[str, Any]) -> dict[str, Read]:
    """By name of those fields whose values change: what becomes of a value."""
    return {field.name: read for field in fields if (read := _read(field, features.get(field.name)))}


def _read(field: Any, feature: Any) -> Read | None:
    """What becomes of a value of the field; None if it stays as it is."""
    from pyarrow import types

    kind, feature = field.type, feature if isinstance(feature, dict) else {}
    named = (getattr(kind, "extension_name", ""), ((field.metadata or {}).get(b"ARROW:extension:name") or b"").decode())
    if JSON_TYPE in named or feature.get("_type") == "Json":
        return _unless_null(decoded_cell) if feature.get("decode", True) else None
    if types.is_floating(kind) and kind.bit_width < 64:
        return _unless_null(single)
    if types.is_struct(kind) and (reads := _reads(kind, feature)):
        return _unless_null(lambda value: value | {name: read(value[name]) for name, read in reads.items()})
    if types.is_map(kind) and (of_value := _read(kind.item_field, None)):
        return _unless_null(lambda pairs: [(key, of_value(value)) for key, value in pairs])
    is_list = hasattr(kind, "value_field") and not types.is_map(kind)
    if is_list and (of_item := _read(kind.value_field, feature.get("feature"))):
        return _unless_null(lambda items: [of_item(item) for item in items])
    return None


def _unless_null(read: Read) -> Read:
    return lambda value: None if value is None else read(value)
