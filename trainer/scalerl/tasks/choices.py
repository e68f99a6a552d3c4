"""Multiple choice, as in ARC ({"text": [...], "label": [...]}, "answerKey") and HellaSwag ("endings", "label")."""

from collections.abc import Sequence
from typing import Any

from scalerl.recipe import MultipleChoice
from scalerl.rollout import Judgement
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import FileTask, Problem
from scalerl.tasks.files import TaskRow
from scalerl.tasks.same_problem import problem_key
from scalerl.tokens import Tokenizer
from scalerl.verifiers.choice import LETTERS, verify_choice

ANSWERS = ("answerKey", "answer", "label")


def choice_task(settings: MultipleChoice, tokenizer: Tokenizer) -> FileTask:
    """The task in a file of multiple-choice problems."""

    def judge(text: str, gold: tuple[str, int]) -> Judgement:
        letter, num_choices = gold
        return Judgement(verify_choice(text, letter, num_choices=num_choices))

    return FileTask(settings, tokenizer, read=lambda row: problem(row, settings), judge=judge, num_judges=1)


def problem(row: TaskRow, settings: MultipleChoice) -> Problem:
    """One row of the file."""
    question = row.text("question", settings.question, ("question", "problem", "prompt", "ctx"))
    written = row.value("choices", settings.choices, ("choices", "options", "endings"))
    texts, labels = _choices(written, row.where)
    answer = row.value("answer", settings.answer, ANSWERS)
    letter = LETTERS[_place(answer, labels, row.where)]
    solution = row.optional_text("solution", settings.solution, ("solution",))
    lines = "\n".join(f"{LETTERS[i]}. {text}" for i, text in enumerate(texts))
    answers = {settings.answer, settings.solution, *ANSWERS, "solution"}
    return Problem(
        question=f"{question}\n{lines}",
        asked=asked(row, settings.template, {"question": question, "choices": lines}, answers),
        answer=(letter, len(texts)),
        thought=solution,
        response=letter,
        key="\n".join([problem_key(question), *sorted(map(problem_key, texts))]),
    )


def _choices(written: Any, where: str) -> tuple[list[str], list[str]]:
    """Texts of the choices and their labels, A, B and so on where none are written."""
    texts, labels = (written.get("text"), written.get("label")) if isinstance(written, dict) else (written, None)
    match texts:
        case [str(), str(), *_] if all(isinstance(text, str) for text in texts) and len(texts) <= len(LETTERS):
            if labels is None:
                return list(texts), [*LETTERS[: len(texts)]]
            if isinstance(labels, list) and len(labels) == len(texts):
                return list(texts), [str(label) for label in labels]
    raise ValueError(
        f"{where}: choices are {written!r:.120}; 2 to {len(LETTERS)} texts are needed, "
        'or {"text": [...], "label": [...]} with as many of both'
    )


def _place(answer: Any, labels: Sequence[str], where: str) -> int:
    """The position that a label, or a number from 0, stands for."""
    text = str(answer).strip()
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and labels == [*LETTERS[: len(labels)]] and int(text) < len(labels):
        return int(text)
    raise ValueError(f"{where}: answer is {answer!r:.40}; one of {', '.join(labels)} is needed, or a position from 0")
