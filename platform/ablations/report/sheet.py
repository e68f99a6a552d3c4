"""CSV for other programs, spreadsheets among them, whoever named what stands in it.

>>> sheet_text([{"variant": "=1+1", "A": 0.612}])
"variant,A\\n'=1+1,0.612\\n"
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from ablations.terminal.visible import made_visible

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "|")
"""Text that begins so a spreadsheet computes, or sends to another program."""


def sheet_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A header and a line per row; a column that a row does not have is empty there. No rows are an empty text."""
    target = io.StringIO()
    if rows:
        writer = csv.DictWriter(target, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: safe_cell(value) for key, value in row.items()} for row in rows)
    return target.getvalue()


def safe_cell(value: Any) -> Any:
    """A number as it is; text that is a formula behind an apostrophe, its control characters visible."""
    if not isinstance(value, str):
        return value
    text = made_visible(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
