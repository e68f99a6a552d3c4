"""Lengths of the prompts of tasks, and of the right answers of generated ones."""

from collections.abc import Sequence

from scalerl.recipe.episodes import Episodes, turn_limit
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


def context_fault(settings: Episodes, prompts: Sequence[Prompt], most: int, context: int | None) -> str:
    """Why some of these episodes have no room for a turn of up to `most` tokens, or the model none for whole ones, and
    after a semicolon the remedy; empty if all fit."""
    longest, limit = max(prompts, key=lambda prompt: len(prompt.tokens)), turn_limit(settings, most)
    size, whole = len(longest.tokens), settings.context_tokens
    if size + limit > whole:
        return (
            f"context_tokens {whole:,} has no room for one turn: the first text of seed {longest.id} has {size:,} "
            f"tokens, and a turn {limit:,}; set the task's context_tokens to {size + limit:,} for one turn, or higher"
        )
    if context is not None and whole > context:
        return (
            f"context_tokens {whole:,} exceeds the model's context of {context:,}; set the task's context_tokens to "
            f"{context:,}, or lower"
        )
    return ""
