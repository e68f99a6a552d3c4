"""Questions with short answers, as in NaturalQuestions (a list of answers) and SQuAD ({"text": [...]})."""

import json
import re
from functools import partial
from typing import Any

from scalerl.recipe import Qa
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow, as_text, fault_of_text, named_parts
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.short_answers.qa import judge_qa, normalise

ANSWER_COLUMNS = ("answers", "answer")
_PRINTED = re.compile(r"""\s*(?:\[['"]|array\(|\{['"]text['"]:)""")
"""Beginning of a list of texts, or of SQuAD's object, that was written as a text."""


def qa_task(settings: Qa, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of questions."""
    judge = partial(judge_qa, min_f1=settings.min_f1)
    return file_task(settings, tokenizer, read=lambda row: qa_problem(row, settings), judge=judge, num_judges=1)


def qa_problem(row: TaskRow, settings: Qa) -> Problem:
    """Problem in one row.

    UnusableError if no answer could match; ValueError if the answers are neither a text nor a list of texts.
    """
    question = row.text("question", settings.question, ("question", "problem", "prompt"))
    written = row.value("answers", settings.answers, ANSWER_COLUMNS)
    texts = _texts(written)
    if written in ([], {}) or (isinstance(written, dict) and written.get("text") == []):  # SQuAD 2.0
        raise UnusableError(f"{row.where}: its list of answers is empty, so no answer could be right")
    if not texts or any(map(fault_of_text, texts)):
        advice = "; write this list as JSON, or, if it is one answer, as the only text of a list"
        if not isinstance(written, str):
            advice = named_parts(written, f"answers: {row.named(settings.answers, ANSWER_COLUMNS)}")
        raise ValueError(f"{row.where}: answers are {written!r:.80}; expected a text or a list of texts{advice}")
    texts = [*map(as_text, texts)]
    if not any(map(normalise, texts)):
        raise UnusableError(
            f"{row.where}: answers {written!r:.80} have no words except articles, so nothing can match them"
        )
    return Problem(
        question=question,
        asked=asked(
            row,
            settings.template,
            {"question": question},
            {settings.answers, settings.solution, *ANSWER_COLUMNS, "solution"},
        ),
        answer=tuple(texts),
        thought=row.optional_text("solution", settings.solution, ("solution",)),
        response=texts[0],
    )


def _texts(written: Any) -> list[Any]:
    """The answers, also of a text that holds their list as JSON; empty for another form."""
    match written:
        case {"text": list(texts)} | list(texts):
            return texts
        case bool():
            return ["yes", "true"] if written else ["no", "false"]
        case str() if _PRINTED.match(written):
            try:
                return _texts(json.loads(written))
            except ValueError:
                return []
        case dict():
            return []
    return [written]
