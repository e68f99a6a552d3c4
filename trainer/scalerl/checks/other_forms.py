r"""Judges right answers in forms that do not come from the task, using the task's verifier: all should be right.

A demonstration repeats the answer as the task reads it, so a misreading agrees with itself. The forms here are made
only from the written answer:

    27                     \boxed{27}, "The answer is 27.", 27 on a line of its own; 12345 also as 12,345
    The answer is: 27      the same forms of the number at the end
    x^2 + 1                "The answer is $x^2 + 1$."
    a letter, a text       "The answer is (B).", \boxed{B}; "The answer is Paris.", \boxed{Paris}
    a program              the program without a code fence
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from scalerl.checks.answers import LEAST_ACCEPTED, shortened
from scalerl.checks.finding import Fault, Finding, Severity, of_rows
from scalerl.checks.subject import MadeTask, Subject
from scalerl.prompts.judge import verdicts
from scalerl.quantities import counted
from scalerl.recipe import Code, Math, MultipleChoice, Qa
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks import Task
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tasks.task import Written
from scalerl.tokens import Tokenizer

MOST_PROGRAMS = 20
"""Maximum number of programs per task that are judged again, since each runs all its tests."""
LONGEST = 100
"""Maximum length of an answer that is put into a sentence."""
Gold = tuple[Prompt, Written, tuple[str, ...]]
"""A prompt, its written answer, and other forms of its right answer."""
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?")
_BEGINS = re.compile(rf"\\?\$?({_NUMBER.pattern})(?=\D)")
_PHRASE = re.compile(rf"[^\d\\$]*(?:[:=>]|\bis)\s*(?P<number>{_NUMBER.pattern})\s*(?:</\w+>)?\s*\.?")


def check_other_forms(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields a line for each task in a file, and one for right answers that are read only in part."""
    assert not isinstance(subject.tokenizer, str)
    for made in subject.tasks:
        if made.task is not None and (golds := distinct_golds(made, made.task)):
            say(f"judging {counted(len(golds), 'right answer')} of {made.name} in other forms")
            yield from _of_task(made, made.task, golds, subject.tokenizer)


def other_forms(settings: object, answer: Any, written: Written) -> tuple[str, ...]:
    """Other forms of a right answer; empty for a task that generates its prompts."""
    match settings:
        case Math():
            return _of_mathematics(str(answer))
        case MultipleChoice():
            return f"The answer is ({answer[0]}).", f"\\boxed{{{answer[0]}}}"
        case Qa():
            short = [text for text in answer if len(text) <= LONGEST and "\n" not in text]
            return tuple(form for text in short for form in (f"The answer is {text}.", f"\\boxed{{{text}}}"))
        case Code() if written.answer is not None:
            return (written.answer.removeprefix("```python\n").removesuffix("\n```"),)
    return ()


def _of_mathematics(gold: str) -> tuple[str, ...]:
    whole = gold.strip().strip("$").strip()
    phrase = _PHRASE.fullmatch(whole)
    number = whole if _NUMBER.fullmatch(whole) else phrase["number"] if phrase else None
    if number is None:
        mark = "$" if any(sign in whole for sign in "\\^_") else ""
        return (f"The answer is {mark}{whole}{mark}.",) if len(whole) <= LONGEST and "$" not in whole else ()
    plain = number.replace(",", "")
    forms = [f"\\boxed{{{plain}}}", f"The answer is {plain}.", f"So we have it.\n\nAnswer: {plain}"]
    sign, digits = plain[: plain.startswith("-")], plain.removeprefix("-")
    if digits.isdecimal() and len(digits) > 3 and not digits.startswith("0"):
        forms.append(f"\\boxed{{{sign}{int(digits):,}}}")
    return tuple(forms)


def distinct_golds(made: MadeTask, task: Task) -> list[Gold]:
    """One prompt for each right answer, with its other forms."""
    found: dict[str, Gold] = {}
    for prompt in made.prompts():
        written = task.written(prompt)
        if forms := other_forms(made.settings, prompt.answer, written):
            found.setdefault(f"{prompt.answer!r}", (prompt, written, forms))
    golds = list(found.values())
    return golds[:MOST_PROGRAMS] if isinstance(made.settings, Code) else golds


def _of_task(made: MadeTask, task: Task, golds: list[Gold], tokenizer: Tokenizer) -> Iterator[Finding]:
    """Yields a finding on rejected forms, and one on answers that are read only in part."""

    def judge(prompt: Prompt, form: str, thought: str = "") -> Judgement:
        return task.judge(prompt, list(demonstrated_solution(tokenizer, thought, form)))

    def examined(gold: Gold) -> tuple[list[str], str] | None:
        """Forms that are not judged right, and the text left out; None if the verifier rejects the written answer."""
        prompt, written, forms = gold
        if judge(prompt, written.answer or "", written.thought or "").outcome != "right":
            return None
        judged = {form: judge(prompt, form) for form in forms}
        if isinstance(made.settings, Math) and (number := _BEGINS.match(prompt.answer)):
            judged |= {"": one} if (one := judge(prompt, f"\\boxed{{{number[1]}}}")).outcome == "right" else {}
        refused = [form for form, one in judged.items() if one.outcome != "right"]
        in_boxes = (one for form, one in judged.items() if not form or form.startswith("\\boxed"))
        return refused, next((one.dropped for one in in_boxes if one.dropped), "")  # a sentence has words to drop

    found = verdicts(task, examined, golds)
    both = [(prompt, written.where, *one) for (prompt, written, _), one in zip(golds, found, strict=True) if one]
    faults = [
        Fault(where=where, what=f"the verifier rejects {shortened(forms[0])} for {_gold(prompt)}")
        for prompt, where, forms, _ in both
        if forms
    ]
    partly = [
        Fault(where=where, what=f"{_gold(prompt)} is read without {left_out}")
        for prompt, where, _, left_out in both
        if left_out
    ]
    name, num_right = f"{made.name} in other forms", len(both) - len(faults)
    said = f"{num_right:,} of {counted(len(both), 'different right answer')} are judged right in every form"
    if both:
        remedy = "write only answers into their column: everything in it is compared"
        level: Severity = "error" if num_right < LEAST_ACCEPTED * len(both) else "warning"
        yield of_rows("answers", name, said, faults, remedy, level=level)
    if partly:
        found_partly = f"{len(partly):,} of {counted(len(both), 'different right answer')} can be matched only in part"
        remedy = "if that part matters, ask for it in another way; if not, remove it from the file"
        yield of_rows("answers", f"{made.name} read in part", found_partly, partly, remedy)


def _gold(prompt: Prompt) -> str:
    return shortened(prompt.answer) if isinstance(prompt.answer, str) else f"{prompt.answer!r:.60}"
