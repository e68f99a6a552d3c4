"""The text of a prompt: a template filled from a row.

asked(row, "{context} {question}", {"question": "Who?"}, ("answer",))    PromptText(text="He. Who?", columns={...})
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scalerl.errors import Rejected
from scalerl.recipe.template import fill
from scalerl.tasks.files import TaskRow, is_missing

_LIKE_A_NAME = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*(?:[!:.\[].*)?")


class TemplateFault(Rejected):
    """A template refers to something that the rows lack, as the first row shows."""


@dataclass(frozen=True, kw_only=True)
class PromptText:
    """Text of a prompt, and the columns that it shows besides the parts of the problem."""

    text: str
    columns: Mapping[str, str]


def asked(row: TaskRow, template: str, parts: Mapping[str, str], answers: Iterable[str | None]) -> PromptText:
    """The template filled with parts of the problem and columns of the row.

    Raises TemplateFault if the row has no such column, or if the column is one of `answers`, or has it as a part, which
    would reveal the answer.
    """
    columns: dict[str, str] = {}

    def column(name: str) -> str | None:
        if not is_missing(row.at(name)) or name in row.values:
            if any(f"{name}.".startswith(f"{one}.") or f"{one}.".startswith(f"{name}.") for one in answers if one):
                raise TemplateFault(
                    f"{row.where}: template shows {{{name}}}, the column of the right answer; remove it, or write "
                    f"{{{{{name}}}}} for the literal text {{{name}}}"
                )
            columns[name] = _text(row, name)
            return columns[name]
        like = _LIKE_A_NAME.fullmatch(name)
        if like is None or not (like["name"] == name.strip() or like["name"] in {*parts, *row.values}):
            return None
        there = ", ".join([*parts, *(one for one in row.values if one not in parts and one not in answers)])
        raise TemplateFault(
            f"{row.where}: template shows {{{name}}}, but the row has no such column; it may show {there}. Write "
            f"{{{{{name}}}}} for the literal text {{{name}}}"
        )

    return PromptText(text=fill(template, parts, column), columns=columns)


def question_only(template: str, question: str) -> PromptText:
    """The template filled with the question of a problem that has no row."""
    return PromptText(text=fill(template, {"question": question}, lambda name: None), columns={})


def _text(row: TaskRow, name: str) -> str:
    """Column as text, with several texts or lists of sentences as paragraphs and an empty text unchanged."""
    value: Any = row.at(name)
    if isinstance(value, str) and not value.strip():
        return value
    if isinstance(value, list) and value:
        paragraphs = [_joined(one) for one in value]
        if None not in paragraphs:
            return "\n\n".join(map(str, paragraphs))
    if isinstance(value, dict):
        parts = ", ".join(f"{{{name}.{part}}}" for part in value)
        raise ValueError(f"{row.where}: template shows {{{name}}}, which has parts; name one of {parts}")
    if is_missing(value):
        raise ValueError(f"{row.where}: template shows {{{name}}}, but this row has no value there; give it a text")
    return row.text(name, name, ())


def _joined(paragraph: Any) -> str | None:
    """Text, or the sentences of a list in one line; None for anything else."""
    if isinstance(paragraph, list) and all(isinstance(text, str) for text in paragraph):
        return " ".join(text.strip() for text in paragraph)
    return paragraph if isinstance(paragraph, str) else None
