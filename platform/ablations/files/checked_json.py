"""JSON written by the platform, checked when it is read back because someone may have edited it."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def checked(content: Any, schema: TypeAdapter[T]) -> T:
    """Return plain data as the schema's type, without coercion; raises ValueError with all complaints in one line."""
    try:
        # Go through JSON: pydantic's strict mode does not turn a Python list into a tuple.
        return schema.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ValueError("; ".join(complaints)) from None
