r"""The letter of a multiple-choice answer, as ARC and HellaSwag ask for it.

After the thinking part the letter is looked for in this order. Within one rule the last letter counts, so that a model
may correct itself:

1. the content of the last \boxed{}: `B`, `(B)`, `\text{B}`, `B. Paris`;
2. what follows "answer is", "answer:", "choice is" or "option is": `The answer is (B)`, `**Answer:** b`;
3. a line that is the letter, or starts with the letter and a bracket, a full stop or a colon: `B`, `(B)`, `B. Paris`;
4. the letter in brackets, where the text has one only: `I would pick (B) here`.

A small letter counts only where no word follows: "the answer is a bird" is no A. "A or B" settles on no letter. An
answer without a letter, or with one past the last choice, is unparsable. Of an answer of more than 100,000 characters
the last 100,000 are read, in time that grows in proportion.
"""

import re
from typing import TYPE_CHECKING

from scalerl.verifiers.math_answer import last_boxed

if TYPE_CHECKING:  # the judges load without torch
    from scalerl.rollout import Outcome

MAX_CHARS = 100_000
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_OPENING = re.compile(r"""(?:[\s*_"'`$(\[{]|\\(?:text|mathrm|textbf|mathbf)\s*\{)*""")
_SAID = re.compile(
    r"\b(?:answer|choice|option)\W{0,4}(?:\bis\b|:)(?:\W*(?:answer|option|choice|letter)\b)?:?([^\n]*)", re.IGNORECASE
)
_LINE = re.compile(r"""^(?:[^\S\n]|[*_"'`$(\[])*[A-Za-z][*_"'`$ ]*(?:[)\].:][^\n]*|$)""", re.MULTILINE)
_OR_ANOTHER = re.compile(r"""[\s*_)\]}.,"'`$]*(?:\b(?:or|and)\b|[,/&])[\s*_(\[{"'`$]*[A-HJ-Z]\b""")
_BRACKETED = re.compile(r"\(([A-Z])\)")


def verify_choice(answer: str, gold: str, *, num_choices: int) -> "Outcome":
    """Judge what follows the thinking part: `verify_choice("The answer is (B).", "B", num_choices=4)` is "right"."""
    choices = LETTERS[:num_choices]
    if len(gold) != 1 or gold not in choices:
        raise ValueError(f"gold choice {gold!r}: one of the letters {choices[:1]} to {choices[-1:]} is needed")
    letter = chosen_letter(answer[-MAX_CHARS:])
    if letter is None or letter not in choices:
        return "unparsable"
    return "right" if letter == gold else "wrong"


def chosen_letter(response: str) -> str | None:
    """The letter the response settles on, as a capital; None where no rule finds one."""
    boxed = last_boxed(response)
    if boxed is not None:
        return first_letter(boxed)
    for rule in (_SAID.findall, lambda text: [line[0] for line in _LINE.finditer(text)]):
        letters = [letter for place in rule(response) if (letter := first_letter(place))]
        if letters:
            return letters[-1]
    bracketed = set(_BRACKETED.findall(response))
    return bracketed.pop() if len(bracketed) == 1 else None


def first_letter(text: str) -> str | None:
    """The single letter that `text` starts with, marks aside, as a capital; None where it is not alone."""
    start = _OPENING.match(text)
    rest = text[start.end() if start else 0 :]
    if not rest[:1].isascii() or not rest[:1].isalpha() or rest[1:2].isalnum() or rest[1:2] == "'":
        return None
    if _OR_ANOTHER.match(rest, 1):
        return None
    follows = any(character.isalnum() for character in rest[1:])
    return None if rest[0].islower() and follows else rest[0].upper()
