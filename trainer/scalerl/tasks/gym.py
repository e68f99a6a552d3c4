"""Problems of the library `reasoning-gym`, judged by the scorer of the data set that asked them."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from scalerl.gym import problems, problems_sha256
from scalerl.recipe import ReasoningGym
from scalerl.rollout import Judgement
from scalerl.tasks.asked import question_only
from scalerl.tasks.files import TaskRow
from scalerl.tasks.text_task import Problem, TextTask
from scalerl.tokens import Tokenizer
from scalerl.verifiers.gym_score import packed
from scalerl.verifiers.judge_worker import MAX_KEEPERS, judge_within
from scalerl.verifiers.mathematics.answer import final_answer, unquoted

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def gym_task(settings: ReasoningGym, tokenizer: Tokenizer) -> TextTask:
    """Task of a data set; raises ValueError if the library now makes other problems than when the run was planned."""
    config = json.dumps(settings.config, sort_keys=True)
    asked = (settings.dataset, config, settings.size, settings.seed)
    if problems_sha256(*asked) != settings.problems_sha256:
        raise ValueError(
            f"task {settings.title!r}: reasoning-gym makes other problems than when the run was planned; install the "
            f"version that it was planned with, or restart the sweep: other problems make new runs"
        )

    def judge(text: str, problem: str) -> Judgement:
        answer = answer_in(text, settings.answer)
        if not answer:
            return Judgement("unparsable")
        question = {"answer": answer, "dataset": settings.dataset, "config": config, "problem": problem}
        judged = judge_within("gym_score", question, time_limit_s=settings.time_limit_s)
        return judged if settings.partial_scores else Judgement(judged.outcome)

    return TextTask(
        settings,
        tokenizer,
        rows=[
            TaskRow(where=f"{settings.dataset}:{number}", values=problem)
            for number, problem in enumerate(problems(*asked), start=1)
        ],
        read=lambda row: gym_problem(row.values, settings),
        judge=judge,
        num_judges=min(MAX_KEEPERS, os.cpu_count() or 1),
    )


def gym_problem(made: Mapping[str, Any], settings: ReasoningGym) -> Problem:
    """A problem of the library, which writes no answer if many are right; its question is its own normal form, since
    puzzles may differ only by marks."""
    question, answer = made["question"], made["answer"]
    return Problem(
        question=question,
        asked=question_only(settings.template, question),
        answer=packed(made),
        response="" if answer is None else f"<answer>{answer}</answer>" if settings.answer == "tag" else str(answer),
        key=question,
    )


def answer_in(text: str, part: Literal["tag", "stated", "text"]) -> str:
    """The part of a response that is judged, "" without one: `answer_in("So 2 + 2 = 4.", "stated")` is "4"."""
    match part:
        case "tag":
            tagged = _TAGGED.findall(text)
            return tagged[-1].strip() if tagged else ""
        case "stated":
            stated, place = final_answer(text)
            return "" if place == "prose" else unquoted(stated.rstrip(".").strip())
        case "text":
            return text.strip()
