"""A JSON object that carries its own SHA-256, so that reading detects any changed character."""

import hashlib
import json
from typing import Any

from scalerl.plain_json import parsed_json

SEAL_KEY = "sha256"
"""The key of the SHA-256 of all other keys."""


def seal(content: dict[str, Any], indent: int | None = None) -> bytes:
    """The object as a file's content, with its SHA-256 at the end."""
    return json.dumps({**content, SEAL_KEY: _sha256(content)}, indent=indent).encode()


def read_sealed(content: bytes) -> tuple[dict[str, Any], bool]:
    """The object without its SHA-256, and True if it had one: earlier versions wrote none.

    ValueError if the content is not a JSON object, or has been changed.
    """
    found = parsed_json(content)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    if SEAL_KEY not in found:
        return found, False
    written = found.pop(SEAL_KEY)
    if written != _sha256(found):
        raise ValueError("the SHA-256 does not match the content")
    return found, True


def _sha256(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
