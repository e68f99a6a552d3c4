"""Checks that the training prompts have the order that a curriculum needs."""

from collections.abc import Iterator

import numpy as np

from scalerl.checks.finding import Finding
from scalerl.checks.subject import Subject
from scalerl.prompts.ordered_pool import pool_of


def check_curriculum(subject: Subject) -> Iterator[Finding]:
    """Yields a line for each task whose prompts have no such order."""
    for made in subject.tasks:
        if made.task is None or made.is_downstream:
            continue
        try:
            pool_of(made.task.train, subject.recipe.curriculum, np.random.default_rng(0))
        except ValueError as error:
            found, _, remedy = str(error).partition("; ")
            yield Finding(part="data", check=f"{made.name} order", level="error", found=found, remedy=remedy)
