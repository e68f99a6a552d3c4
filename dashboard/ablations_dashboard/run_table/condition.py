"""The rows of a table that a reader asks for, by words and comparisons side by side.

failed                      rows in which the word occurs, whatever the column
loss.type=dapo seed!=2      rows with this value, and without that one
learning_rate>0.0001        numbers compared; the end of a setting's path names it, if no other has that end
compute>50%                 numbers may be percentages
"out of memory"             quotation marks hold words together
"""

import re
import shlex
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ablations.errors import AblationsError
from ablations.nearest_name import did_you_mean

COMPARISON = re.compile(r"([^<>=!]+)(>=|<=|!=|==|=|>|<)(.*)", re.DOTALL)
COMPARISON_SIGNS = tuple("<>=!")
EQUAL = 1e-9
"""Relative difference below which two numbers are equal."""


def fulfilled(table: pd.DataFrame, asked: str) -> np.ndarray:
    """True for each row that fulfils every part of `asked`. AblationsError if a part names no column or cannot be
    read."""
    lexer = shlex.shlex(asked, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        parts = [part for one in lexer if (part := one.rstrip(","))]
    except ValueError:
        raise AblationsError(f"The filter `{asked}` opens a quotation mark and does not close it.") from None
    found = np.full(len(table), True)
    for part in parts:
        if part.startswith(COMPARISON_SIGNS):
            raise AblationsError(f"`{part}` compares nothing; a comparison has no spaces, as in `seed=2`.")
        compared = COMPARISON.fullmatch(part)
        found &= _has_word(table, part) if compared is None else _compared(table, *compared.groups())
    return found


def _has_word(table: pd.DataFrame, word: str) -> np.ndarray:
    found = np.full(len(table), False)
    for texts in (pd.Series(table[name]) for name in table.select_dtypes(exclude="number")):
        found |= np.array([isinstance(text, str) and word.lower() in text.lower() for text in texts], dtype=bool)
    return found


def _compared(table: pd.DataFrame, name: str, sign: str, wanted: str) -> np.ndarray:
    name, sign = column_named(name, list(table.columns)), "=" if sign == "==" else sign
    column = pd.Series(table[name])
    if not pd.api.types.is_numeric_dtype(column):
        if sign not in ("=", "!="):
            raise AblationsError(f"`{name}` has words, so `{sign}` does not apply to it; use = or !=.")
        is_same = np.array([isinstance(text, str) and text.lower() == wanted.lower() for text in column], dtype=bool)
        return is_same if sign == "=" else ~is_same
    try:
        number = float(wanted.removesuffix("%")) / (100 if wanted.endswith("%") else 1)
    except ValueError:
        raise AblationsError(f"`{name}` has numbers; `{wanted}` is none.") from None
    numbers = column.to_numpy(dtype=float)  # a missing one is NaN, which no comparison but != fulfils
    is_same = np.isclose(numbers, number, rtol=EQUAL, atol=0)
    return {
        "=": is_same, "!=": ~is_same, ">": (numbers > number) & ~is_same, ">=": (numbers > number) | is_same,
        "<": (numbers < number) & ~is_same, "<=": (numbers < number) | is_same,
    }[sign]  # fmt: skip


def column_named(name: str, columns: Sequence[str]) -> str:
    """The column of this name, or the only one whose path ends so: `learning_rate` is `optimiser.learning_rate`.

    AblationsError if no column, or several, could be meant.
    """
    if name in columns:
        return name
    ends = [one for one in columns if one.endswith(f".{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise AblationsError(f"`{name}` may be any of {', '.join(ends)}; write one in full.")
    raise AblationsError(f"The table has no column `{name}`: {did_you_mean(name, columns, 'columns')}.")
