"""Multiple choice: as in ARC ({"text": [...], "label": [...]}), HellaSwag (a list) or GPQA (columns)."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalerl.recipe import MultipleChoice
from scalerl.rollout import Judgement
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow, as_text, fault_of_text, is_missing, read_task_rows, unpacked
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.same_problem import problem_key
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.short_answers.choice import LETTERS, judge_choice

CHOICES = ("choices", "options", "endings")
CHOICE_COLUMNS = ("answerKey", "answer", "label")


def choice_task(settings: MultipleChoice, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of multiple-choice problems."""

    def judge(text: str, gold: tuple[str, tuple[str, ...]]) -> Judgement:
        letter, texts = gold
        return judge_choice(text, letter, num_choices=len(texts), texts=texts)

    first = _first_number(settings)
    notes = (
        ("positions of right choices count from 1, since no row has 0",) if first and not settings.count_from else ()
    )
    return file_task(
        settings,
        tokenizer,
        read=lambda row: choice_problem(row, settings, first),
        judge=judge,
        num_judges=1,
        notes=notes,
    )


def choice_problem(row: TaskRow, settings: MultipleChoice, first: int | None = 0) -> Problem:
    """The problem in one row; numeric answers are positions counted from `first`, or texts of choices if it is None.

    UnusableError if two choices have the text of the right one.
    """
    question = row.text("question", settings.question, ("question", "problem", "prompt", "ctx"))
    texts, labels = _choices(_written(row, settings), row.where)
    answer = row.value("answer", settings.answer, CHOICE_COLUMNS)
    place = (
        texts.index(as_text(answer)) if settings.answer_is_a_choice else _place(answer, texts, labels, first, row.where)
    )
    if texts.count(texts[place]) > 1:
        raise UnusableError(f"{row.where}: the right answer {texts[place]!r:.40} is the text of two choices")
    letter, texts = LETTERS[place], _without_letters(texts)
    solution = row.optional_text("solution", settings.solution, ("solution",))
    lines = "\n".join(f"{LETTERS[i]}. {text}" for i, text in enumerate(texts))
    answers = {settings.answer, settings.solution, *CHOICE_COLUMNS, "solution"}
    return Problem(
        question=f"{question}\n{lines}",
        asked=asked(row, settings.template, {"question": question, "choices": lines}, answers),
        answer=(letter, tuple(texts)),
        thought=solution,
        response=letter,
        key="\n".join([problem_key(question), *sorted(map(problem_key, texts))]),
    )


def _written(row: TaskRow, settings: MultipleChoice) -> Any:
    """Choices as in the row, or by letter if each has a column.

    Columns that include the right answer are put in the order of a hash, as their own order would show it.
    """
    if not isinstance(settings.choices, tuple):
        try:
            return row.value("choices", settings.choices, CHOICES)
        except ValueError as error:
            raise ValueError(f"{error}, or choices in columns of their own by `choices: [COLUMN, COLUMN]`") from None
    texts = [row.at(name) if name in row.values else row.value("choices", name, ()) for name in settings.choices]
    if settings.answer_is_a_choice:
        texts.sort(key=lambda text: hashlib.sha256(str(text).encode(errors="surrogatepass")).digest())
    return dict(zip(LETTERS, texts, strict=False))


def _choices(written: Any, where: str) -> tuple[list[str], list[str]]:
    """Texts and labels of the choices; labels default to A, B and so on."""
    match unpacked(written):
        case {"text": texts, "label": labels}:
            pass
        case {**by_label} if by_label and {*by_label} <= {*LETTERS}:
            labels = [label for label, text in by_label.items() if not is_missing(text)]
            texts = [by_label[label] for label in labels]
        case [{"text": _, "label": _}, *_] as pairs:
            texts, labels = ([pair.get(part) for pair in pairs] for part in ("text", "label"))
        case texts:
            labels = [*LETTERS[: len(texts)]] if isinstance(texts, list) else None
    if (
        isinstance(texts, list)
        and isinstance(labels, list)
        and 2 <= len(texts) == len(labels) <= len(LETTERS)
        and not any(map(fault_of_text, texts))
    ):
        return [*map(as_text, texts)], [str(label) for label in labels]
    raise ValueError(
        f"{where}: choices are {written!r:.120}; expected 2 to {len(LETTERS)} texts, "
        '{"text": [...], "label": [...]} with as many of both, or {"A": "...", "B": "..."}'
    )


def _without_letters(texts: list[str]) -> list[str]:
    """Texts without letters of their own, as AQuA has them: "A)21"."""
    found = [re.match(rf"\(?{letter}[).:]\s*(?=\S)", text) for letter, text in zip(LETTERS, texts, strict=False)]
    return [text[one.end() :] for text, one in zip(texts, found, strict=True) if one] if all(found) else texts


def _place(answer: Any, texts: Sequence[str], labels: Sequence[str], first: int | None, where: str) -> int:
    """Index for an answer: a label, a number counted from `first`, or the text of one choice."""
    text, shown = str(answer).strip(), [text.strip() for text in texts]
    if text in labels:
        return labels.index(text)
    if first is not None and text.isdecimal() and _are_letters(labels) and first <= int(text) < first + len(labels):
        return int(text) - first
    if shown.count(text) == 1:
        return shown.index(text)
    if (letter := text.strip("(). ").upper()) in labels:
        return labels.index(letter)
    position = "" if first is None else f", or a position from {first}"
    raise ValueError(
        f"{where}: answer is {answer!r:.40}; expected one of {', '.join(labels)}, the text of one choice{position}"
    )


def _are_letters(labels: Sequence[str]) -> bool:
    return list(labels) == [*LETTERS[: len(labels)]]


def _first_number(settings: MultipleChoice) -> int | None:
    """First number of numeric answers: from the setting, else as all rows together show; None if they are texts.

    Raises ValueError if there are numbers but none is 0 or the number of its choices, or if they may be texts too.
    """
    if settings.count_from is not None or settings.answer_is_a_choice:
        return settings.count_from
    found: dict[str, str] = {}
    for path, split in ((settings.path, settings.split), (settings.validation_path, settings.validation_split)):
        for row in read_task_rows(Path(path), split) if path is not None else ():
            if isinstance(row, LeftOut):
                continue
            try:
                texts, labels = _choices(_written(row, settings), row.where)
                answer = str(row.value("answer", settings.answer, CHOICE_COLUMNS)).strip()
            except ValueError:
                continue
            found.setdefault(_kind(answer, texts, labels), f"{row.where} has {answer}")
    are_numbers = bool(found.keys() & {"zero", "last", "number"})
    if "both" in found and "text" in found and not are_numbers:
        return None
    if "both" in found and ("text" in found or not are_numbers):
        raise ValueError(
            f"task {settings.title!r}: an answer is the text of one choice and may be the position of another "
            f"({found['both']}); set `count_from` if answers are positions, else write letters"
        )
    if "number" in found and not found.keys() & {"zero", "last"}:
        raise ValueError(
            f"task {settings.title!r}: the answers are numbers, none of them 0 or as large as the number of its "
            f"choices ({found['number']}), so they may count from 0 or from 1; set `count_from` to 0 or 1"
        )
    return int("last" in found and "zero" not in found)


def _kind(answer: str, texts: Sequence[str], labels: Sequence[str]) -> str:
    """What an answer shows: a text, a number that may be text and position, or a position that is zero or the last."""
    if not (answer.isdecimal() and _are_letters(labels)):
        return "text" if answer in texts and answer not in labels else "label"
    if answer in texts:
        return "text" if int(answer) > len(texts) else "both"
    return {0: "zero", len(texts): "last"}.get(int(answer), "number")
