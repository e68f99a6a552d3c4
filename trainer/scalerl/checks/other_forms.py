r"""Right answers in forms that do not come from the task, judged by the task's own verifier: all should be right.

A demonstration repeats the answer as the task reads it, so a wrong reading agrees with itself. The forms here are made
from the written answer alone:

    27                     \boxed{27}, "The answer is 27.", 27 on a line of its own; 12345 also as 12,345
    The answer is: 27      the same, of the number that the phrase ends with
    x^2 + 1                "The answer is $x^2 + 1$."
    a letter, a text       "The answer is (B).", \boxed{B}; "The answer is Paris.", \boxed{Paris}
    a program              the program without a fence
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scalerl.checks.finding import Checked, Fault, in_file_order, plural
from scalerl.checks.subject import MadeTask, Subject
from scalerl.recipe import Code, Math, MultipleChoice, Qa
from scalerl.rollout import Prompt
from scalerl.tasks import Task
from scalerl.tasks.responses import demonstrated, demonstrated_solution
from scalerl.tasks.written import Written
from scalerl.tokens import Tokenizer

LEAST_ACCEPTED = 0.5
"""Below this share the column, the form or the verifier is the wrong one, not a row."""
MOST_PROGRAMS = 20
"""Programs of one task that are judged once more: each runs all its tests."""
LONGEST = 100
"""Characters of an answer that a sentence would hold."""
Gold = tuple[Prompt, Written, tuple[str, ...]]
"""A prompt, what is written of it, and the forms that its right answer may have."""
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?")
_PHRASE = re.compile(rf"[^\d\\$]*(?:[:=>]|\bis)\s*(?P<number>{_NUMBER.pattern})\s*(?:</\w+>)?\s*\.?")


def check_other_forms(subject: Subject, say: Callable[[str], None]) -> Iterator[Checked]:
    """A line for each task in a file."""
    assert not isinstance(subject.tokenizer, str)
    for made in subject.tasks:
        if made.task is not None and (golds := distinct_golds(made, made.task)):
            say(f"judging {plural(len(golds), 'right answer')} of {made.name} in other forms")
            yield _of_task(made, made.task, golds, subject.tokenizer)


def other_forms(settings: object, answer: Any, written: Written) -> tuple[str, ...]:
    """How else a right answer might be written; none for a task that makes its prompts."""
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
    forms = [f"\\boxed{{{plain}}}", f"The answer is {plain}.", f"So we have it.\n\n{plain}"]
    sign, digits = plain[: plain.startswith("-")], plain.removeprefix("-")
    if digits.isdecimal() and len(digits) > 3 and not digits.startswith("0"):
        forms.append(f"\\boxed{{{sign}{int(digits):,}}}")
    return tuple(forms)


def distinct_golds(made: MadeTask, task: Task) -> list[Gold]:
    """One prompt for each right answer, with the forms that it may have."""
    found: dict[str, Gold] = {}
    for prompt in made.prompts():
        written = task.written(prompt)
        if forms := other_forms(made.settings, prompt.answer, written):
            found.setdefault(f"{prompt.answer!r}", (prompt, written, forms))
    golds = list(found.values())
    return golds[:MOST_PROGRAMS] if isinstance(made.settings, Code) else golds


def _of_task(made: MadeTask, task: Task, golds: list[Gold], tokenizer: Tokenizer) -> Checked:
    def refused(gold: Gold) -> list[str] | None:
        """The forms that are not right; None for an answer that is not even right as it is written."""
        prompt, written, forms = gold
        own = demonstrated_solution(tokenizer, written.thought or "", written.answer or "")
        if task.verify(prompt, list(own)) != "right":
            return None
        return [form for form in forms if task.verify(prompt, list(demonstrated(tokenizer, "", form))) != "right"]

    with ThreadPoolExecutor(max_workers=task.num_judges) as threads:
        found = list(threads.map(refused, golds))
    faults = [
        Fault(where=written.where, what=f"the verifier does not take {_shortened(forms[0])} for {_gold(prompt)}")
        for (prompt, written, _), forms in zip(golds, found, strict=True)
        if forms
    ]
    name, number = f"{made.name} in other forms", sum(forms is not None for forms in found)
    num_right = number - len(faults)
    said = f"{num_right:,} of {plural(number, 'different right answer')} are right however they are written"
    if not faults:
        return Checked(part="answers", name=name, level="ok", found=said)
    return Checked(
        part="answers",
        name=name,
        level="refused" if num_right < LEAST_ACCEPTED * number else "warning",
        found=said,
        remedy="write the answers alone into their column: all that stands there is compared with what a policy writes",
        faults=in_file_order(faults),
    )


def _gold(prompt: Prompt) -> str:
    return _shortened(prompt.answer) if isinstance(prompt.answer, str) else f"{prompt.answer!r:.60}"


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
