"""Lengths of the prompts of tasks, and of the right answers of generated ones."""

from scalerl.rollout import Prompt
from scalerl.tasks.task import Task
from scalerl.tokens import Tokenizer


def longest_prompt(*tasks: Task) -> int:
    """Tokens of the longest prompt of these tasks, including held-out ones."""
    return max(len(prompt.tokens) for task in tasks for prompt in (*task.train, *task.validation))


def answer_length(task: Task, prompt: Prompt, tokenizer: Tokenizer) -> int | None:
    """Tokens of the written answer to a prompt, including the end of the sequence; None without an answer."""
    answer = task.written(prompt).answer
    return None if answer is None else len(tokenizer.encode(answer)) + 1


def highest_pass_rate(task: Task, tokenizer: Tokenizer, budget: int) -> float:
    """Share of the held-out prompts whose written answer fits a budget of answer tokens."""
    lengths = [answer_length(task, prompt, tokenizer) for prompt in task.validation]
    return sum(length is None or length <= budget for length in lengths) / len(lengths)
