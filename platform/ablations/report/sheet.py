"""CSV for other programs, including spreadsheets, safe for any names of users.

>>> sheet_text([{"variant": "=1+1", "A": 0.612}])
"variant,A\\n'=1+1,0.612\\n"
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from ablations.terminal.visible import made_visible

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "|")
"""First characters of a text that a spreadsheet computes or sends to another program."""


def sheet_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A header and a line per row; a missing column is an empty cell. Without rows the text is empty."""
    target = io.StringIO()
    if rows:
        writer = csv.DictWriter(target, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: safe_cell(value) for key, value in row.items()} for row in rows)
    return target.getvalue()


def safe_cell(value: Any) -> Any:
    """A number unchanged; a text with its control characters visible, and an apostrophe before a formula."""
    if not isinstance(value, str):
        return value
    text = made_visible(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
