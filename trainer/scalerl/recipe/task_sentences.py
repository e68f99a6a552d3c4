"""Description of what a pass rate measures, in a sentence: README, pages and reports take it from here."""

from collections.abc import Sequence
from pathlib import Path

from scalerl.quantities import counted
from scalerl.recipe import AnyTask, Code, CustomTask, KSmallest, Math, Modular, MultipleChoice, Own, Qa, ReasoningGym
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.tasks import TaskFile

K_SMALLEST_EXAMPLE = ("3:k9a2", "29a")
"""A prompt of the task and its right answer."""
MODULAR_EXAMPLE = ("0137a:25b6f", "x3w2")
"""A prompt of the task modulo 17 and a right answer."""


def task_text(settings: AnyTask) -> str:
    """Instruction to the policy, without a subject: `given 3:k9a2, write the three smallest symbols, 29a`."""
    match settings:
        case KSmallest():
            prompt, answer = K_SMALLEST_EXAMPLE
            return f"given {prompt}, write the three smallest symbols, {answer}"
        case Modular():
            prompt, answer = MODULAR_EXAMPLE
            return f"given {prompt}, write a program that maps 0 to 2, 1 to 5, 3 to b and so on, {answer} modulo 17"
        case Math():
            return f"solve the mathematics of {data_set_name(settings)}"
        case Code():
            return f"write programs that pass the tests of {data_set_name(settings)}"
        case MultipleChoice():
            return f"choose the right answers to {data_set_name(settings)}"
        case Qa():
            return f"answer the questions of {data_set_name(settings)}"
        case ReasoningGym():
            return f"solve the problems of {settings.dataset} (reasoning-gym)"
        case CustomTask():
            return f"solve the problems of {settings.function}"
        case Episodes():
            named = settings.environment
            if not isinstance(named, str):
                named = named.function if isinstance(named, Own) else " ".join(named.command)
            return f"win episodes of {named} within {counted(settings.turns, 'turn')}"


def data_set_name(settings: TaskFile) -> str:
    """The name of a data set: its published form if it has one, else its file without folders."""
    form = getattr(settings, "form", None)
    return str(form or Path(settings.path).name)


def task_sentence(tasks: Sequence[AnyTask]) -> str:
    """Sentence on what the pass rate measures: `Task: given 3:k9a2, write the three smallest symbols, 29a.`; one part
    for each task of a mix, with its name.
    """
    if len(tasks) == 1:
        return f"Task: {task_text(tasks[0])}."
    return f"Tasks: {'; '.join(f'{one.title}: {task_text(one)}' for one in tasks)}."
