"""Checks that programs written by the policy can run here, and that tests reject wrong programs."""

from collections.abc import Callable, Iterator

from scalerl.checks.finding import Fault, Finding, Severity, of_rows
from scalerl.checks.subject import Subject
from scalerl.prompts.judge import verdicts
from scalerl.quantities import counted
from scalerl.recipe import Code
from scalerl.rollout import Prompt
from scalerl.sandbox import Sandbox, SandboxUnavailable
from scalerl.tasks import Task
from scalerl.tasks.program_text import program_in
from scalerl.tasks.proof import wrong_programs
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tokens import Tokenizer


def check_sandbox(subject: Subject) -> Iterator[Finding]:
    """Yields one line; none for a recipe without code tasks."""
    if not any(isinstance(one, Code) for one in (*subject.recipe.tasks, *subject.recipe.evaluation.downstream)):
        return
    try:
        isolation = Sandbox().isolation
    except SandboxUnavailable as error:
        reason, _, remedy = str(error).rpartition("\n")
        yield Finding(part="sandbox", check="isolation", level="error", found=reason, remedy=remedy)
        return
    yield Finding(part="sandbox", check="isolation", level="ok", found=f"programs run here, isolated by {isolation}")


def check_tests(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields a line for the tests of each code task; none may accept a deliberately wrong program."""
    assert not isinstance(subject.tokenizer, str)
    for made in subject.tasks:
        if not isinstance(made.settings, Code) or made.task is None:
            continue
        prompts = list(made.prompts())
        say(f"checking the tests of {counted(len(prompts), 'problem')} of {made.name}")
        faults = _passed_by_wrong_programs(made.task, prompts, subject.tokenizer)
        found = (
            f"the tests of {len(prompts) - len(faults):,} of {counted(len(prompts), 'problem')} reject wrong programs"
        )
        if faults:
            found += f"; {counted(len(faults), 'problem')} cannot be judged"
        remedy = "correct or remove these rows: their pass rate says nothing about the policy"
        level: Severity = "error" if len(faults) == len(prompts) else "warning"
        yield of_rows("tests", made.name, found, faults, remedy, level=level)


def _passed_by_wrong_programs(task: Task, prompts: list[Prompt], tokenizer: Tokenizer) -> list[Fault]:
    def fault(prompt: Prompt) -> Fault | None:
        written = task.written(prompt)
        wrong = wrong_programs(prompt.answer.tests, program_in(written.answer or "").text)
        for what, program in wrong.items():
            response = demonstrated_solution(tokenizer, "", f"```python\n{program}\n```")
            if task.judge(prompt, list(response)).outcome == "right":
                return Fault(where=written.where, what=f"the tests accept {what}", kind="cannot be judged")
        return None

    return [found for found in verdicts(task, fault, prompts) if found is not None]
