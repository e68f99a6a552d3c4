"""ASCII signs for an output that is not UTF-8, so that no command fails because of its locale.

>>> "0.54 ± 0.02, A − B".encode("ascii", HANDLER)
b'0.54 ~ 0.02, A - B'
"""

import codecs
import io
from typing import TextIO

HANDLER = "ablations.signs"
"""Name of the error handler for `str.encode` and for streams."""
ASCII_SIGNS = dict(zip("−–—÷×±≥≤→·…≈°", "---/x~><>.?~'", strict=True))
"""ASCII signs, one character for each, so that columns stay aligned; "…" is an unknown end of an interval."""


def replace_what_cannot_be_printed(*streams: TextIO) -> None:
    """Make streams write an ASCII sign where their encoding lacks a character."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """The signs for characters that cannot be encoded, `?` for a character without a sign, and the position at which
    encoding continues."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(ASCII_SIGNS.get(character, "?") for character in missing), error.end


codecs.register_error(HANDLER, _in_ascii)
