"""A second reading of kept answers, independent of the verifiers: it shares no code with them and is simpler.

A fooled verifier rewards wrong answers, and the pass rate does not show it. The second reading finds the
stated answer in its own way and compares numbers exactly, letters in their strict form and plain words by their text.
Formulas, programs and answers that were cut have no second opinion. If the two disagree, a person looks.

    second_opinion("so it is \\boxed{0.5}", "1/2")   "right"
    second_opinion("The answer is 33", "-28")         "wrong"
    second_opinion("\\boxed{2x}", "x + x")            None: a formula
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from ablations.diagnosis.history import LogRow, answer_text

Opinion = Literal["right", "wrong"]

_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s*/\s*\d+(?:\.\d+)?)?|[-+−]?\.\d+")
_FRACTION = re.compile(r"([-+−]?)\\[dt]?frac\s*\{(-?\d+)\}\s*\{(\d+)\}")
_STATED = re.compile(r"####|\banswer\s*(?:is\b|:|=)|\bfinal\s*:", re.IGNORECASE)
_LETTER = re.compile(r"\W*([A-J])\W*")
_FORMULA = re.compile(r"[%^_*(){}<>|\\√π]|\d[A-Za-z]|[A-Za-z]\d")
_WORD = re.compile(r"[0-9A-Za-z]+")
_JUDGED = ("right", "wrong", "unparsable")
"""Verdicts about an answer; the others are about a verifier that failed."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A kept answer that the verifier and the second reading judge differently."""

    run: str
    step: int
    kind: str
    """`held_out` or `trained`."""
    task: str
    prompt_id: str
    verdict: str
    """The verifier's."""
    second: Opinion
    stated: str
    """The answer that the second reading found."""
    right_answer: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The kept answers of a run, judged a second time."""

    num_kept: int
    num_judged: int
    """Number of answers that the second reading could judge."""
    disagreements: tuple[Disagreement, ...]


def audit_rollouts(run: str, rollouts: Sequence[LogRow]) -> Audit:
    """Judge the kept answers of a run a second time."""
    judged: list[tuple[LogRow, Opinion]] = [(row, said) for row in rollouts if (said := _of_row(row)) is not None]
    differing = tuple(
        Disagreement(
            run=run,
            **{name: row[name] for name in ("step", "kind", "task", "prompt_id", "verdict", "right_answer")},
            second=opinion,
            stated=second_reading(answer_text(row)),
        )
        for row, opinion in judged
        if (row["verdict"] == "right") != (opinion == "right")
    )
    return Audit(num_kept=len(rollouts), num_judged=len(judged), disagreements=differing)


def second_opinion(answer: str, right_answer: str) -> Opinion | None:
    """The verdict on an answer by its stated result; None if this reading cannot tell."""
    stated, right = second_reading(answer), _bare(right_answer)
    if not stated or not right:
        return None
    if _bare(stated).casefold() == right.casefold():
        return "right"
    if (wanted := _number(right)) is not None:
        return _opinion_on_numbers(stated, wanted)
    if (letter := _LETTER.fullmatch(right)) and (chosen := _LETTER.fullmatch(stated)):
        return "right" if chosen[1] == letter[1] else "wrong"
    return "wrong" if _WORD.fullmatch(right) and _WORD.fullmatch(_bare(stated)) else None


def second_reading(text: str) -> str:
    """The stated result of an answer: its last box, else the text after the last "answer is" or ####, else its last
    line."""
    if boxes := list(_boxes(text)):
        return boxes[-1].strip()
    if marks := list(_STATED.finditer(text)):
        lines = text[marks[-1].end() :].strip().splitlines()
        return lines[0].strip() if lines else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _of_row(row: LogRow) -> Opinion | None:
    """The second opinion on a kept answer; None of one that was cut, by the run or for the log."""
    is_whole = not row.get("truncated") and all("left_out" not in span for span in row.get("answer", ()))
    if not is_whole or row.get("verdict") not in _JUDGED or not row.get("right_answer"):
        return None
    return second_opinion(answer_text(row), row["right_answer"])


def _opinion_on_numbers(stated: str, wanted: Fraction) -> Opinion | None:
    """Verdict on numbers: one number is judged by its value, several only if the last is right, percentages and
    formulas not at all."""
    said = _FRACTION.sub(r"\1\2/\3", stated).rpartition("=")[2]
    found = _numbers(said)
    if not found or _FORMULA.search(said):
        return None
    if found[-1] == wanted:
        return "right"
    return "wrong" if len(found) == 1 else None


def _boxes(text: str) -> Iterator[str]:
    """The contents of every closed \\boxed{...}."""
    for mark in re.finditer(r"\\boxed\s*\{", text):
        depth, at = 1, mark.end()
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        if not depth:
            yield text[mark.end() : at - 1]


def _bare(text: str) -> str:
    return " ".join(text.strip().strip("$").rstrip(".").split())


def _number(text: str) -> Fraction | None:
    """The number that a text is; None if it holds anything else."""
    plain = _FRACTION.sub(r"\1\2/\3", text)
    return next(iter(_numbers(plain)), None) if _NUMBER.fullmatch(plain) else None


def _numbers(text: str) -> list[Fraction]:
    """The numbers in a text, in order; a division by zero is none."""
    found = []
    for one in _NUMBER.findall(_FRACTION.sub(r"\1\2/\3", text)):
        top, _, below = one.replace(",", "").replace("−", "-").replace(" ", "").partition("/")
        divisor = Fraction(below or 1)
        if divisor:
            found.append(Fraction(top) / divisor)
    return found
