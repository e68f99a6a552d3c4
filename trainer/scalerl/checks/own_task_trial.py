"""Tries a user's own task: its problems, and its judge on right answers and on others."""

import time
from collections.abc import Iterator
from typing import Any, get_args

from scalerl.checks.own_inputs import seeded
from scalerl.quantities import counted
from scalerl.recipe.own import CustomTask
from scalerl.recipe.own_function import place_of, raised
from scalerl.rollout import Judgement, Outcome
from scalerl.tasks.own import TaskAnswer, TaskProblem, TaskProblems, problems_of

MOST_JUDGED = 20
"""Number of problems whose answers are judged."""
OTHER_ANSWERS = ("", " ", "?", "-", "1e999", "\\frac{", "\0", "é" * 5000)
"""Texts that a policy may write: a judge must have a verdict on each."""


def trial_of_task(own: CustomTask) -> Iterator[tuple[str, str]]:
    """Problems of a task, each with its remedy, and the time of its judge."""
    found: TaskProblems = seeded(0, problems_of, own)
    yield from task_problems(own, found)
    began = time.perf_counter()
    for one in found.problems[:MOST_JUDGED]:
        found.judge(TaskAnswer(text=one.answer, problem=one))
    ms = 1000 * (time.perf_counter() - began) / len(found.problems[:MOST_JUDGED])
    yield f"{counted(len(found.problems), 'problem')}; a judgement takes {ms:.2g} ms", ""


def task_problems(own: CustomTask, found: TaskProblems) -> Iterator[tuple[str, str]]:
    """Problems of a task, each with its remedy."""
    problems = list(found.problems)
    for one in problems:
        if not isinstance(one, TaskProblem) or not isinstance(one.question, str) or not isinstance(one.answer, str):
            yield f"returns {one!r:.80}", "return TaskProblem(question=..., answer=...) with texts"
            return
    if not problems:
        yield "returns no problems", "return at least a few hundred"
    if problems != list(seeded(1, problems_of, own).problems):
        yield (
            "returns different problems when called again",
            "a run must be repeatable: draw with a generator that has a seed, as random.Random(seed)",
        )
    for one in problems[:MOST_JUDGED]:
        yield from _judge_problems(own, found, one)


def _judge_problems(own: CustomTask, found: TaskProblems, problem: TaskProblem) -> Iterator[tuple[str, str]]:
    for text in (problem.answer, *OTHER_ANSWERS):
        about = f"{text!r:.40} to {problem.question!r:.60}"
        try:
            judged: Any = found.judge(TaskAnswer(text=text, problem=problem))
            again: Any = found.judge(TaskAnswer(text=text, problem=problem))
        except Exception as error:  # whatever the user's code raises
            where = place_of(own, found.judge, error)
            yield (
                f"{where}: {raised(own, error)}, judging {about}",
                "judge every text, as wrong or unparsable if need be",
            )
            return
        if not isinstance(judged, Judgement) or judged.outcome not in get_args(Outcome):
            yield f"has a judge that returns {judged!r:.80}", 'return Judgement("right") or Judgement("wrong")'
        elif judged != again:
            yield f"has a judge that judges {about} in two ways", "judge only by the text and the problem"
        elif text is problem.answer and judged.outcome != "right":
            yield f"has a judge that calls its own answer {about} {judged.outcome}", "correct the judge or the answer"
