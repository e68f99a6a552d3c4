"""JSON that the platform wrote itself, checked when it is read back: someone may have edited it."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def checked(content: Any, schema: TypeAdapter[T]) -> T:
    """Plain data as the type of the schema, without coercion; ValueError with every complaint in one line."""
    try:
        # Through JSON: pydantic's strict mode fills no tuple from a Python list.
        return schema.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ValueError("; ".join(complaints)) from None
