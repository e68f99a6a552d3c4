"""Judges answers that ignore the question, with the task's own verifier: the same text for every prompt.

    frequent            the most frequent written answers
    fixed               nothing, "0", "I do not know"
    of other problems   the written answers of some prompts, given to all

What the best of them earns a policy can reach without solving anything. Three data sets of `reasoning-gym` 0.1.25 pay
one text in full: the scorer of coin_flip compares first digits, that of puzzle24 not the numbers of the puzzle, and
game_of_life_halting takes every text for true.
"""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from scalerl.checks.answers import shortened
from scalerl.checks.finding import Finding, judged
from scalerl.checks.subject import MadeTask, Subject
from scalerl.prompts.judge import verdicts
from scalerl.quantities import counted
from scalerl.recipe import Code, Math, ReasoningGym
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks import Task
from scalerl.tasks.responses import demonstrated_solution
from scalerl.tokens import Tokenizer

FIXED = ("", "0", "I do not know")
NUM_FREQUENT, NUM_OF_OTHERS = 3, 5
NUM_FIRST, NUM_ANSWERED = 20, 200
"""Numbers of prompts, spread over the task, on which first every text is tried, and then only the best one."""
_Item = TypeVar("_Item")
SECONDS = 20.0
"""Time limit for the answers to one task; most take less than one second, and those of
intermediate_integration, whose scorer integrates, minutes."""
WARNED = 0.75
"""Mean reward at which the finding becomes a warning; on balanced yes-or-no answers, a constant earns 0.5."""


def check_constant_answers(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields a line for each task with enough prompts; `check_tests` deals with programs."""
    assert not isinstance(subject.tokenizer, str)
    for made in subject.tasks:
        if made.task is None or isinstance(made.settings, Code | Episodes):
            continue
        prompts = _spread([*made.prompts()], NUM_ANSWERED)
        if len(prompts) >= NUM_FIRST:
            say(f"answering {counted(len(prompts), 'prompt')} of {made.name} without reading them")
            yield _of_task(made, made.task, prompts, subject.tokenizer)


@dataclass(frozen=True, kw_only=True)
class Earned:
    """The reward that one text earns as the answer to every prompt.

    Earned(text="\\boxed{2}", pass_rate=0.04, reward=0.04, num_prompts=200)
    """

    text: str
    pass_rate: float
    reward: float
    """Mean reward, with 1 for a right answer: above the pass rate for a task with partial scores."""
    num_prompts: int
    """Prompts whose answer was judged in time."""


def best_constant(made: MadeTask, task: Task, prompts: Sequence[Prompt], tokenizer: Tokenizer) -> Earned | None:
    """The text with the highest reward, over all prompts; None if too few answers are judged within SECONDS.

    It is chosen by what each text earns over some of the prompts. A text on which the judge fails is left out.
    """

    def earned(text: str, asked: Sequence[Prompt], until: float) -> Earned | None:
        response, crashes = list(demonstrated_solution(tokenizer, "", text)), list[Prompt]()

        def judge(prompt: Prompt) -> Judgement | None:
            if crashes or time.monotonic() > until:
                return None
            judged = task.judge(prompt, response)
            if judged.outcome == "crashed":  # a judge of the user's own raised an error, and has printed it
                crashes.append(prompt)
            return judged

        with redirect_stdout(sys.stderr):  # standard output may be a JSON document
            found = [one for one in verdicts(task, judge, asked) if one is not None]
        if crashes or len(found) < min(NUM_FIRST, len(asked)):
            return None
        is_right = [one.outcome == "right" for one in found]
        rewards = [1.0 if right else one.score or 0.0 for right, one in zip(is_right, found, strict=True)]
        return Earned(text=text, pass_rate=fmean(is_right), reward=fmean(rewards), num_prompts=len(found))

    texts, first = _texts(made, task, tokenizer), _spread(prompts, NUM_FIRST)
    earned(texts[0], first[: task.num_judges], until=math.inf)  # starts the verifier's processes, which takes seconds
    began = time.monotonic()
    tried = [one for text in texts if (one := earned(text, first, began + SECONDS / 2))]
    best = max(tried, key=lambda one: one.reward, default=None)
    return best and (earned(best.text, prompts, began + SECONDS) or best)


def _texts(made: MadeTask, task: Task, tokenizer: Tokenizer) -> list[str]:
    written = [answer for prompt in made.prompts() if (answer := task.written(prompt).answer) is not None]
    frequent = [answer for answer, _ in Counter(written).most_common(NUM_FREQUENT)]
    fixed = [_as_answer(made, text) for text in FIXED]
    texts = dict.fromkeys([*frequent, *fixed, *_spread(written, NUM_OF_OTHERS)])
    return [text for text in texts if _is_written(text, tokenizer)]


def _as_answer(made: MadeTask, text: str) -> str:
    """A text where the task's verifier looks for an answer."""
    match made.settings:
        case Math():
            return f"\\boxed{{{text}}}"
        case ReasoningGym(answer="tag"):
            return f"<answer>{text}</answer>"
    return text


def _is_written(text: str, tokenizer: Tokenizer) -> bool:
    """True if the tokenizer has the text; symbols have no words."""
    try:
        tokenizer.encode(text)
    except ValueError:
        return False
    return True


def _of_task(made: MadeTask, task: Task, prompts: Sequence[Prompt], tokenizer: Tokenizer) -> Finding:
    best, name = best_constant(made, task, prompts, tokenizer), f"{made.name} without reading"
    if best is None:
        found = f"not examined: {NUM_FIRST} answers take more than {SECONDS / 2:g} s to judge"
        return Finding(part="answers", check=name, level="ok", found=found)
    answered = f"{shortened(best.text)} as the answer to each of {counted(best.num_prompts, 'prompt')}"
    found = f"{answered} has pass rate {best.pass_rate:.3g}"
    found += f" and mean reward {best.reward:.3g}" if best.reward > best.pass_rate else ""
    remedy = (
        "use another task, verifier or balance of answers: a policy earns this without solving anything, so a high "
        "pass rate says little"
    )
    problem = found if best.reward >= WARNED else ""
    return judged("answers", name, problem, found, remedy, level="warning")


def _spread(items: Sequence[_Item], most: int) -> list[_Item]:
    """At most `most` of the items, at even distances."""
    count = min(most, len(items))
    return [items[number * len(items) // count] for number in range(count)]
