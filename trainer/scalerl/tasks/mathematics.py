r"""Problems with a mathematical answer, as in GSM8K ("... #### 42"), MATH ("... \boxed{42}") and AIME ("42")."""

import os
from functools import partial

from scalerl.recipe import Math
from scalerl.tasks.asked import asked
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow
from scalerl.tasks.forms import CALCULATION, MATH_COLUMNS
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.judge_worker import MAX_KEEPERS
from scalerl.verifiers.mathematics.answer import judge_math

NO_ANSWER = {"nan", "NaN", "NAN", "None", "null", "NULL", "<NA>", "NaT", "inf", "-inf", "Infinity", "-Infinity"}
"""Texts that programs write for a missing or too large number."""
NO_VALUE = {"proof", "na", "n/a", "notfound"}
"""Lower-case texts that data sets write where a problem has no answer that could be compared."""


def math_task(settings: Math, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of mathematical problems."""
    # More judges than cores would run into the time limit.
    num_judges = min(MAX_KEEPERS, os.cpu_count() or 1)
    judge = partial(judge_math, time_limit_s=settings.time_limit_s, reads_prose=settings.reads_prose)
    return file_task(
        settings, tokenizer, read=lambda row: math_problem(row, settings), judge=judge, num_judges=num_judges
    )


def math_problem(row: TaskRow, settings: Math) -> Problem:
    """Problem in one row.

    UnusableError if the row has no answer that could be judged; ValueError for one that looks like a mistake.
    """
    columns = MATH_COLUMNS[settings.form]
    question = row.text("question", settings.question, columns.question)
    answer = row.text("answer", settings.answer, columns.answer)
    solution = row.optional_text("solution", settings.solution, columns.solution)
    if solution is None and "####" in answer:
        solution = CALCULATION.sub("", answer) if settings.form == "gsm8k" else answer
    if answer.strip() in NO_ANSWER:
        raise ValueError(f"{row.where}: answer is {answer!r}, the form of a missing value; give an answer")
    if answer.strip().lower() in NO_VALUE:
        raise UnusableError(f"{row.where}: answer is {answer!r}, which is not a value")
    try:
        gold = columns.gold(answer)
    except ValueError as error:
        raise ValueError(f"{row.where}: {error}") from None
    if answer == solution and gold.split() == answer.split() and len(answer.split()) > 1:
        raise UnusableError(f"{row.where}: its solution states no answer in \\boxed{{}} or after '####'")
    answers = {settings.answer, *columns.answer, settings.solution, *columns.solution}
    return Problem(
        question=question,
        asked=asked(row, settings.template, {"question": question}, answers),
        answer=gold,
        thought=None if solution is None else solution.rpartition("####")[0].rstrip() or solution,
        response=f"\\boxed{{{gold}}}",
    )
