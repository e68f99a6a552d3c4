"""Reads JSON that someone may have edited."""

import json
from contextlib import suppress
from typing import Any

import msgspec


def parsed_json(content: bytes | str) -> Any:
    """The value of a JSON text; ValueError if it is not JSON, or nested too deeply to be read."""
    # msgspec takes a third of the time. What it refuses is left to Python, which reads NaN and names line and column.
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        return msgspec.json.decode(content)
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
