"""Every right answer that is written down, judged by the verifier of its own task: all should be right.

An answer that its own verifier refuses belongs to a prompt that no policy can be rewarded for. A demonstration that it
refuses teaches what is never rewarded; it is judged whole, the written thought before the answer.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from scalerl.checks.finding import Fault, Finding, Severity, in_file_order
from scalerl.checks.subject import MadeTask, Subject
from scalerl.prompts.demonstrations import refuse_demonstrations, refuse_without_demonstrations
from scalerl.prompts.judge import NOT_JUDGED, VerifierFailed
from scalerl.quantities import counted
from scalerl.rollout import Outcome, Prompt
from scalerl.tasks import Task, TaskError
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.written import Written
from scalerl.tokens import Tokenizer

LEAST_ACCEPTED = 0.5
"""Below this share the column, the form or the verifier is the wrong one, not a row."""
OUTCOME_FAULTS = {
    "wrong": "the verifier calls its own answer wrong",
    "unparsable": "the verifier finds no answer in its own answer",
    "timed_out": "the verifier did not judge its own answer in time",
    "crashed": "the verifier failed at its own answer",
}


def check_answers(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """A line on the answers of each task, and one on the demonstrations that a warm start learns from."""
    assert not isinstance(subject.tokenizer, str)
    teaches = subject.recipe.warm_start.steps > 0
    for made in subject.tasks:
        if made.task is not None:
            judged = judged_answers(made, made.task, subject.tokenizer, say)
            yield _of_answers(made, judged)
            if teaches and not made.is_downstream and made.task.has_demonstrations:
                yield _of_demonstrations(made, made.task, judged)
    trained = [made.task for made in subject.tasks if not made.is_downstream and made.task is not None]
    if teaches and trained:
        try:
            refuse_without_demonstrations(trained)
        except TaskError as error:
            found, _, remedy = str(error).partition("; ")
            yield Finding(part="answers", check="demonstrations", level="error", found=found, remedy=remedy)
    elif trained and subject.recipe.model.type != "pretrained":
        found = "a model made from scratch begins with random weights, and no warm start teaches it to answer"
        remedy = "set warm_start.steps, unless a right answer can be found by chance"
        yield Finding(part="answers", check="demonstrations", level="warning", found=found, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """What its own verifier says of a written answer, None where no answer is written."""

    prompt: Prompt
    written: Written
    outcome: Outcome | None

    @property
    def is_refused(self) -> bool:
        """Whether an answer is written and not taken as right."""
        return self.outcome not in ("right", None)

    def fault(self) -> Fault:
        """The refused answer as a fault."""
        assert self.outcome is not None
        return Fault(
            where=self.written.where, what=f"{OUTCOME_FAULTS[self.outcome]}: {_shortened(self.written.answer or '')}"
        )


def judged_answers(made: MadeTask, task: Task, tokenizer: Tokenizer, say: Callable[[str], None]) -> list[JudgedAnswer]:
    """Every prompt of the task with the verdict on its written answer, after its written thought if it has one."""
    asked = [(prompt, task.written(prompt)) for prompt in made.prompts()]
    num_answers = sum(written.answer is not None for _, written in asked)
    if num_answers:
        say(f"judging {counted(num_answers, 'written answer')} of {made.name}")

    def judge(pair: tuple[Prompt, Written]) -> JudgedAnswer:
        prompt, written = pair
        if written.answer is None:
            return JudgedAnswer(prompt=prompt, written=written, outcome=None)
        response = demonstrated_solution(tokenizer, written.thought or "", written.answer)
        outcome = task.judge(prompt, list(response)).outcome
        return JudgedAnswer(prompt=prompt, written=written, outcome=outcome)

    if task.num_judges == 1:
        return [judge(pair) for pair in asked]
    with ThreadPoolExecutor(max_workers=task.num_judges) as threads:
        return list(threads.map(judge, asked))


def _of_answers(made: MadeTask, judged: list[JudgedAnswer]) -> Finding:
    answered = [one for one in judged if one.outcome is not None]
    if not answered:
        found = "no written answers, so nothing to judge"
        return Finding(part="answers", check=made.name, level="ok", found=found)
    refused = [one for one in answered if one.is_refused]
    num_right = len(answered) - len(refused)
    found = f"{num_right:,} of {len(answered):,} written answers are right by their own verifier"
    if without := len(judged) - len(answered):
        found += f"; {counted(without, 'prompt')} without one"
    if not refused:
        return Finding(part="answers", check=made.name, level="ok", found=found)
    is_worthless = num_right < LEAST_ACCEPTED * len(answered)
    remedy = "correct or remove these rows: no policy can be rewarded for them"
    if is_worthless:
        remedy = "check the column of the answers and the task's type"
    if num_failed := sum(one.outcome in NOT_JUDGED for one in refused):
        found += f"; the verifier failed at {num_failed:,}"
        remedy = "run the command again; if the verifier fails again, its own messages on standard error say why"
    return Finding(
        part="answers",
        check=made.name,
        level="error" if is_worthless else "warning",
        found=found,
        remedy=remedy,
        faults=in_file_order(one.fault() for one in refused),
    )


def _of_demonstrations(made: MadeTask, task: Task, judged: list[JudgedAnswer]) -> Finding:
    name, trained = f"{made.name} demonstrations", set(task.train)
    demonstrated = [
        one for one in judged if one.prompt in trained and one.outcome is not None and one.written.thought is not None
    ]
    if not demonstrated:
        return Finding(part="answers", check=name, level="ok", found="the task writes its own demonstrations")
    refused = [one for one in demonstrated if one.is_refused]
    num_right = len(demonstrated) - len(refused)
    level: Severity = "warning"
    remedy = "correct these solutions, or name another column by the task's `solution`"
    try:
        refuse_demonstrations(task.name, [(one.written.where, one.outcome) for one in demonstrated if one.outcome])
    except VerifierFailed:
        level, remedy = "error", "run the command again; `platform doctor` says whether programs can be run here"
    except TaskError:
        level = "error"
    found = f"{num_right:,} of {counted(len(demonstrated), 'demonstration')} are right by the verifier"
    if not refused:
        return Finding(part="answers", check=name, level="ok", found=found)
    return Finding(
        part="answers",
        check=name,
        level=level,
        found=found,
        remedy=remedy,
        faults=in_file_order(one.fault() for one in refused),
    )


def _shortened(answer: str) -> str:
    line = " ".join(answer.split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")
