"""Sentence on what the pass rates of a sweep measure."""

from ablations.findings.repeated_runs import some_recipe
from ablations.home.started_sweep import StartedSweep
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks.sentences import task_sentence


def task_of_sweep(sweep: StartedSweep | None) -> str:
    """The sentence on the tasks of a sweep, `Task: given 3:k9a2, ...`; empty for runs of another program, whose task
    the platform does not know, and before any run has started.
    """
    recipe = None if sweep is None else some_recipe(sweep)
    return task_sentence(recipe.tasks) if isinstance(recipe, ResolvedRecipe) else ""
