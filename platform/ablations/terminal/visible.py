"""Text written by other people's runs, files or models, made safe to print by showing its control characters.

>>> made_visible("done\\x1b]0;owned\\x07")
'done\\\\x1b]0;owned\\\\x07'
"""

import re

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, and C1, which some terminals treat as ESC
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # text direction, line ends, zero-width characters
    "\ud800-\udfff\U000e0000-\U000e007f]"  # surrogates, which cannot be printed, and invisible tags
)
"""Characters that move the cursor, change colours or the title, or reorder or hide text beside them."""


def made_visible(text: str) -> str:
    """The text with each such character escaped: `\\x1b`, `\\r`, `\\u202e`. Line ends and tabs stay."""
    return STEERING.sub(_escape, text) if STEERING.search(text) else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    short = {0x08: "\\b", 0x0D: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
