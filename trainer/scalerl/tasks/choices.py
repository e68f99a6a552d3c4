"""Multiple choice, as in ARC ({"text": [...], "label": [...]}, "answerKey") and HellaSwag ("endings", "label")."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalerl.recipe import MultipleChoice
from scalerl.rollout import Judgement
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow, read_task_rows
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.same_problem import problem_key
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.choice import LETTERS, judge_choice

CHOICES = ("choices", "options", "endings")
CHOICE_COLUMNS = ("answerKey", "answer", "label")


def choice_task(settings: MultipleChoice, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of multiple-choice problems."""

    def judge(text: str, gold: tuple[str, tuple[str, ...]]) -> Judgement:
        letter, texts = gold
        return judge_choice(text, letter, num_choices=len(texts), texts=texts)

    first = _first_number(settings)
    notes = (
        ["positions of right choices count from 1, as no row has 0"] if first and settings.count_from is None else []
    )
    return file_task(
        settings,
        tokenizer,
        read=lambda row: choice_problem(row, settings, first),
        judge=judge,
        num_judges=1,
        notes=notes,
    )


def choice_problem(row: TaskRow, settings: MultipleChoice, first: int = 0) -> Problem:
    """Problem in one row; answers that are numbers count from `first`."""
    question = row.text("question", settings.question, ("question", "problem", "prompt", "ctx"))
    written = row.value("choices", settings.choices, CHOICES)
    texts, labels = _choices(written, row.where)
    answer = row.value("answer", settings.answer, CHOICE_COLUMNS)
    place = _place(answer, texts, labels, first, row.where)
    if texts.count(texts[place]) > 1:
        raise UnusableError(f"{row.where}: the right answer {texts[place]!r:.40} is the text of two choices")
    letter = LETTERS[place]
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


def _choices(written: Any, where: str) -> tuple[list[str], list[str]]:
    """Texts and labels of the choices; labels default to A, B and so on."""
    texts, labels = (written.get("text"), written.get("label")) if isinstance(written, dict) else (written, None)
    match texts:
        case [str(), str(), *_] if all(isinstance(text, str) for text in texts) and len(texts) <= len(LETTERS):
            if labels is None:
                return list(texts), [*LETTERS[: len(texts)]]
            if isinstance(labels, list) and len(labels) == len(texts):
                return list(texts), [str(label) for label in labels]
    raise ValueError(
        f"{where}: choices are {written!r:.120}; expected 2 to {len(LETTERS)} texts, "
        'or {"text": [...], "label": [...]} with as many of both'
    )


def _place(answer: Any, texts: Sequence[str], labels: Sequence[str], first: int, where: str) -> int:
    """Index for an answer: a label, a number counted from `first`, or the text of one choice."""
    text = str(answer).strip()
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and _are_letters(labels) and first <= int(text) < first + len(labels):
        return int(text) - first
    if texts.count(text) == 1:
        return texts.index(text)
    raise ValueError(
        f"{where}: answer is {answer!r:.40}; expected one of {', '.join(labels)}, the text of one choice, or a "
        f"position from {first}"
    )


def _are_letters(labels: Sequence[str]) -> bool:
    return list(labels) == [*LETTERS[: len(labels)]]


def _first_number(settings: MultipleChoice) -> int:
    """First number of numeric answers: from the setting, else as all rows together show.

    Raises ValueError if there are numbers but none is 0 or the number of its choices.
    """
    if settings.count_from is not None:
        return settings.count_from
    seen: tuple[int, str] | None = None
    is_from_1 = False
    for path, split in ((settings.path, settings.split), (settings.validation_path, settings.validation_split)):
        for row in read_task_rows(Path(path), split) if path is not None else ():
            if isinstance(row, LeftOut):
                continue
            try:
                texts, labels = _choices(row.value("choices", settings.choices, CHOICES), row.where)
                answer = str(row.value("answer", settings.answer, CHOICE_COLUMNS)).strip()
            except ValueError:
                continue
            if answer.isdecimal() and _are_letters(labels) and answer not in texts:
                if int(answer) == 0:
                    return 0
                seen = seen or (int(answer), row.where)
                is_from_1 = is_from_1 or int(answer) == len(texts)
    if seen is not None and not is_from_1:
        raise ValueError(
            f"task {settings.title!r}: the answers are numbers, none of them 0 or as large as the number of its "
            f"choices ({seen[1]} has {seen[0]}), so they may count from 0 or from 1; set `count_from` to 0 or 1"
        )
    return int(is_from_1)
