"""How long the prompts of tasks are."""

from scalerl.tasks.task import Task


def longest_prompt(*tasks: Task) -> int:
    """Tokens of the longest prompt of these tasks, held-out ones included."""
    return max(len(prompt.tokens) for task in tasks for prompt in (*task.train, *task.validation))
