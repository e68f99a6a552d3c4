"""Computes an evaluation's standard error from its size alone."""

import math
from collections.abc import Iterator

from scalerl.checks.finding import Finding, Severity, judged
from scalerl.checks.subject import MadeTask, Subject
from scalerl.quantities import counted
from scalerl.tasks.catalogue import FEW_HELD_OUT, FEWEST_HELD_OUT


def check_noise(subject: Subject) -> Iterator[Finding]:
    """Yields a line for each task."""
    for made in subject.tasks:
        if made.task is not None:
            yield _of_task(made, len(made.task.validation), num_samples(subject, made))


def num_samples(subject: Subject, made: MadeTask) -> int:
    """Number of samples per held-out prompt."""
    return getattr(made.settings, "samples", subject.recipe.evaluation.samples)


def standard_errors(num_prompts: int, samples: int) -> tuple[float, float]:
    """Largest standard errors of a pass rate of .5: from sampling alone with fixed prompts, and with newly drawn
    prompts.

    With p = 0.5, sqrt(p (1 - p) / (n k)), and sqrt(p (1 - p) / n): all samples of a prompt may agree.
    """
    variance = 0.5 * 0.5 / num_prompts
    return math.sqrt(variance / samples), math.sqrt(variance)


def _of_task(made: MadeTask, num_prompts: int, samples: int) -> Finding:
    if num_prompts == 0:
        return Finding(part="evaluation", check=made.name, level="error", found="no held-out prompts")
    same, others = standard_errors(num_prompts, samples)
    found = (
        f"{counted(num_prompts, 'held-out prompt')} x {counted(samples, 'sample')}: a pass rate of 0.5 has a standard "
        f"error of at most {same:.3f} on these prompts, {others:.3f} on others like them"
    )
    remedy = f"hold out at least {FEW_HELD_OUT} prompts: raise the task's validation, or use a larger validation_path"
    level: Severity = "error" if num_prompts < FEWEST_HELD_OUT else "warning"
    return judged("evaluation", made.name, found if num_prompts < FEW_HELD_OUT else "", found, remedy, level=level)
