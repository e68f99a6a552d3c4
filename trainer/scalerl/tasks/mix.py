"""Several tasks as one: prompts of all tasks, each judged by its own task."""

from collections.abc import Sequence

import numpy as np

from scalerl.recipe import ALL, AnyTask
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.task import Task, Written


class Mix:
    """Tasks with different names, and each one's share of the training prompts."""

    name = ALL

    def __init__(self, tasks: Sequence[Task], shares: Sequence[float]) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.shares = {task.name: share for task, share in zip(tasks, shares, strict=True)}
        self.train = tuple(prompt for task in tasks for prompt in task.train)
        self.validation = tuple(prompt for task in tasks for prompt in task.validation)
        self.num_judges = max(task.num_judges for task in tasks)
        self.newly_left_out = tuple(f"{task.name}:{name}" for task in tasks for name in task.newly_left_out)

    @property
    def has_demonstrations(self) -> bool:
        """True if one of the tasks has demonstrations."""
        return any(task.has_demonstrations for task in self.tasks.values())

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Judgement by the prompt's own task."""
        return self.tasks[prompt.task].judge(prompt, response)

    def written(self, prompt: Prompt) -> Written:
        """Source, question and right answer of the prompt in its own task."""
        return self.tasks[prompt.task].written(prompt)

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A demonstration of a task that has some, chosen in proportion to the shares."""
        names = [name for name, task in self.tasks.items() if task.has_demonstrations]
        shares = np.array([self.shares[name] for name in names])
        return self.tasks[names[int(rng.choice(len(names), p=shares / shares.sum()))]].demonstrate(rng, noise)


def shares_of(settings: Sequence[AnyTask], tasks: Sequence[Task]) -> list[float]:
    """Weights divided by their sum; without weights, numbers of training prompts divided by theirs."""
    weights = [one.weight or len(task.train) for one, task in zip(settings, tasks, strict=True)]
    return [weight / sum(weights) for weight in weights]
