"""Reads JSON that someone may have edited."""

import json
from typing import Any


def parsed_json(content: bytes | str) -> Any:
    """The value of a JSON text; ValueError if it is not JSON, or nested too deeply to be read."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
