"""Questions with short answers, as in NaturalQuestions (a list of answers) and SQuAD ({"text": [...]})."""

from functools import partial

from scalerl.recipe import Qa
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.qa import judge_qa, normalise

ANSWER_COLUMNS = ("answers", "answer")


def qa_task(settings: Qa, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of questions."""
    judge = partial(judge_qa, min_f1=settings.min_f1)
    return file_task(settings, tokenizer, read=lambda row: qa_problem(row, settings), judge=judge, num_judges=1)


def qa_problem(row: TaskRow, settings: Qa) -> Problem:
    """Problem in one row."""
    question = row.text("question", settings.question, ("question", "problem", "prompt"))
    written = row.value("answers", settings.answers, ANSWER_COLUMNS)
    texts = written.get("text") if isinstance(written, dict) else [written] if isinstance(written, str) else written
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{row.where}: answers are {written!r:.80}; expected a text or a list of texts")
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
