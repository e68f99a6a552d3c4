"""A user's own task: problems and a judge from a function in a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scalerl.recipe.own import CustomTask
from scalerl.recipe.own_function import OwnFailed, call_own, place_of, raised
from scalerl.rollout import Judgement
from scalerl.tasks.asked import question_only
from scalerl.tasks.files import TaskRow
from scalerl.tasks.text_task import Problem, TextTask
from scalerl.tokens import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TaskProblem:
    """One problem: `TaskProblem(question="2 + 2 = ?", answer="4")`."""

    question: str
    answer: str
    """A right answer, for the judge and for demonstrations."""
    solution: str | None = None
    """Written thought before the answer, for demonstrations in the warm start."""
    difficulty: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TaskAnswer:
    """An answer to be judged."""

    text: str
    """Text of the policy after its thinking."""
    problem: TaskProblem


@dataclass(frozen=True, kw_only=True)
class TaskProblems:
    """Result of a task's function."""

    problems: Sequence[TaskProblem]
    """Different questions, in an order that is always the same."""
    judge: Callable[[TaskAnswer], Judgement]
    """Judge of one answer: `Judgement("right")`, `Judgement("wrong")` or `Judgement("unparsable")`."""


def own_task(settings: CustomTask, tokenizer: Tokenizer) -> TextTask:
    """Task of the function; OwnFailed if it raises or returns anything but TaskProblems."""
    found = problems_of(settings)

    def judge(text: str, problem: TaskProblem) -> Judgement:
        try:
            return found.judge(TaskAnswer(text=text, problem=problem))
        except Exception as error:  # whatever the user's code raises: says nothing of the answer, and is counted
            print(
                f"task {settings.title}: {place_of(settings, found.judge, error)}: {raised(settings, error)}",
                flush=True,
            )
            return Judgement("crashed")

    return TextTask(
        settings,
        tokenizer,
        rows=[
            TaskRow(where=f"{settings.function}:{number}", values={"problem": problem})
            for number, problem in enumerate(found.problems, start=1)
        ],
        read=lambda row: _read(row.values["problem"], settings),
        judge=judge,
        num_judges=1,
    )


def problems_of(settings: CustomTask) -> TaskProblems:
    """Result of the function; OwnFailed if it raises or returns another type."""
    found: Any = call_own(settings)
    if not isinstance(found, TaskProblems):
        raise OwnFailed(
            f"{settings.file}:1: {settings.function_name} returns a {type(found).__name__}; must return "
            f"TaskProblems(problems=..., judge=...)"
        )
    return found


def _read(problem: TaskProblem, settings: CustomTask) -> Problem:
    return Problem(
        question=problem.question,
        asked=question_only(settings.template, problem.question),
        answer=problem,
        thought=problem.solution,
        response=problem.answer,
        key=problem.question,
        difficulty=problem.difficulty,
    )
