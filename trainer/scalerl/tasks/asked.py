"""The text of a prompt: a template filled from a row.

asked(row, "{context} {question}", {"question": "Who?"}, ("answer",))    PromptText(text="He. Who?", columns={...})
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from scalerl.errors import Rejected
from scalerl.recipe.template import fill
from scalerl.tasks.files import TaskRow, is_missing

_LIKE_A_NAME = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*(?:[!:.\[].*)?")


class TemplateFault(Rejected):
    """A template asks for what the rows do not have; one row is enough to know."""


@dataclass(frozen=True, kw_only=True)
class PromptText:
    """What a prompt says, and the columns that it shows beside the parts of the problem."""

    text: str
    columns: Mapping[str, str]


def asked(row: TaskRow, template: str, parts: Mapping[str, str], answers: Container[str]) -> PromptText:
    """The template filled with parts of the problem and columns of the row.

    TemplateFault if the row has no such column, or if the column is one of `answers`, which would give the answer away.
    """
    columns: dict[str, str] = {}

    def column(name: str) -> str | None:
        if name in row.values:
            if name in answers:
                raise TemplateFault(
                    f"{row.where}: template shows {{{name}}}, the column of the right answer; leave it out, or write "
                    f"{{{{{name}}}}} if the text {{{name}}} itself is meant"
                )
            columns[name] = _text(row, name)
            return columns[name]
        like = _LIKE_A_NAME.fullmatch(name)
        if like is None or not (like["name"] == name.strip() or like["name"] in {*parts, *row.values}):
            return None
        there = ", ".join([*parts, *(one for one in row.values if one not in parts and one not in answers)])
        raise TemplateFault(
            f"{row.where}: template shows {{{name}}}, and the row has no such column; it may show {there}. Write "
            f"{{{{{name}}}}} if the text {{{name}}} itself is meant"
        )

    return PromptText(text=fill(template, parts, column), columns=columns)


def _text(row: TaskRow, name: str) -> str:
    """The column as text, several texts as paragraphs; one that is empty shows nothing."""
    value: Any = row.values[name]
    if isinstance(value, str) and not value.strip():
        return value
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return "\n\n".join(value)
    if is_missing(value):
        raise ValueError(f"{row.where}: template shows {{{name}}}, and this row has nothing in it; give it a text")
    return row.text(name, name, ())
