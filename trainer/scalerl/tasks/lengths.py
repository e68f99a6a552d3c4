"""Lengths of the prompts of tasks."""

from scalerl.tasks.task import Task


def longest_prompt(*tasks: Task) -> int:
    """Tokens of the longest prompt of these tasks, including held-out ones."""
    return max(len(prompt.tokens) for task in tasks for prompt in (*task.train, *task.validation))
