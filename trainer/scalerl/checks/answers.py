"""Judges every written answer with its task's own verifier: all should be right.

An answer that its verifier rejects belongs to a prompt for which no policy can be rewarded. A rejected demonstration
teaches something that is never rewarded; demonstrations are judged whole, with the written thought before the answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scalerl.checks.finding import Fault, Finding, Severity, of_rows
from scalerl.checks.subject import MadeTask, Subject
from scalerl.prompts.demonstrations import refuse_demonstrations, refuse_without_demonstrations
from scalerl.prompts.judge import NOT_JUDGED, VerifierFailed, verdicts
from scalerl.quantities import counted
from scalerl.rollout import Outcome, Prompt
from scalerl.tasks import Task, TaskError
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.task import Written
from scalerl.tokens import Tokenizer

LEAST_ACCEPTED = 0.5
"""Smallest share of right answers that suggests bad rows; below it, the column, form or verifier must be wrong."""
OUTCOME_FAULTS = {
    "wrong": "the verifier calls the written answer wrong",
    "unparsable": "the verifier finds no answer in the written answer",
    "timed_out": "the verifier did not judge the written answer in time",
    "crashed": "the verifier crashed on the written answer",
}


def check_answers(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields a line for the answers of each task, and one for the demonstrations of the warm start."""
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
        found = "a model made from scratch starts with random weights, and no warm start teaches it to answer"
        remedy = "set warm_start.steps, unless a right answer can be found by chance"
        yield Finding(part="answers", check="demonstrations", level="warning", found=found, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """Outcome of a written answer under its own verifier; None if no answer is written."""

    prompt: Prompt
    written: Written
    outcome: Outcome | None

    @property
    def is_refused(self) -> bool:
        """True if an answer is written and not judged right."""
        return self.outcome not in ("right", None)

    def fault(self) -> Fault:
        """The rejected answer as a fault."""
        assert self.outcome is not None
        return Fault(
            where=self.written.where, what=f"{OUTCOME_FAULTS[self.outcome]}: {shortened(self.written.answer or '')}"
        )


def judged_answers(made: MadeTask, task: Task, tokenizer: Tokenizer, say: Callable[[str], None]) -> list[JudgedAnswer]:
    """Judge the written answer of every prompt of the task, after its written thought if it has one."""
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

    return verdicts(task, judge, asked)


def _of_answers(made: MadeTask, judged: list[JudgedAnswer]) -> Finding:
    answered = [one for one in judged if one.outcome is not None]
    if not answered:
        found = "no written answers to judge"
        return Finding(part="answers", check=made.name, level="ok", found=found)
    refused = [one for one in answered if one.is_refused]
    num_right = len(answered) - len(refused)
    found = f"{num_right:,} of {len(answered):,} written answers are judged right"
    if without := len(judged) - len(answered):
        found += f"; {counted(without, 'prompt')} without one"
    is_worthless = num_right < LEAST_ACCEPTED * len(answered)
    remedy = "correct or remove these rows: no policy can be rewarded for them"
    if is_worthless:
        remedy = "check the column of the answers and the task's type"
    if num_failed := sum(one.outcome in NOT_JUDGED for one in refused):
        found += f"; the verifier crashed on {num_failed:,}"
        remedy = "repeat the command; if the verifier crashes again, its messages on standard error say why"
    level: Severity = "error" if is_worthless else "warning"
    return of_rows("answers", made.name, found, (one.fault() for one in refused), remedy, level=level)


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
    remedy = "correct these solutions, or set the task's `solution` to another column"
    try:
        refuse_demonstrations(task.name, [(one.written.where, one.outcome) for one in demonstrated if one.outcome])
    except VerifierFailed:
        level, remedy = "error", "repeat the command; `platform doctor` checks whether programs can run here"
    except TaskError:
        level = "error"
    found = f"{num_right:,} of {counted(len(demonstrated), 'demonstration')} are judged right"
    return of_rows("answers", name, found, (one.fault() for one in refused), remedy, level=level)


def shortened(answer: str) -> str:
    """The answer in one line of at most 60 characters, in quotation marks."""
    line = " ".join(answer.split())
    return repr(line if len(line) <= 60 else f"{line[:59]}…")
