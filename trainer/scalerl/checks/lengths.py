"""Compares token counts of prompts and written answers with the budget and the model's context."""

from collections.abc import Iterator

import numpy as np

from scalerl.checks.finding import Fault, Finding, of_rows
from scalerl.checks.subject import MadeTask, Subject
from scalerl.generator.interruption_phrase import rollout_phrase, tokens_with_phrase
from scalerl.quantities import counted
from scalerl.recipe import KSmallest, Modular, ResolvedRecipe, Vllm
from scalerl.recipe.episodes import Episodes, turn_limit
from scalerl.recipe.generator import refuse_small_cache
from scalerl.recipe.models import context_of
from scalerl.tasks import Task
from scalerl.tasks.lengths import answer_length, context_fault, highest_pass_rate
from scalerl.tokens import Tokenizer


def check_lengths(subject: Subject) -> Iterator[Finding]:
    """Yields for each task its prompts against the context, and its written answers against the answer budget."""
    assert not isinstance(subject.tokenizer, str)
    try:
        budget = most_tokens(subject.recipe, subject.tokenizer)
        lengths = (len(prompt.tokens) for made in subject.tasks for prompt in made.prompts())
        longest = max([*lengths, subject.recipe.most_before_turn])
        if isinstance(subject.recipe.generator, Vllm):
            refuse_small_cache(subject.recipe.generator, longest + budget)
    except ValueError as error:
        found, _, remedy = str(error).partition("; ")
        yield Finding(part="lengths", check="rollouts", level="error", found=found, remedy=remedy)
        return
    for made in subject.tasks:
        if isinstance(made.settings, Episodes) and any(made.prompts()):
            yield _of_episodes(made, made.settings, budget, context_of(subject.recipe.model))
        elif made.task is not None and any(made.prompts()):
            yield _of_prompts(made, made.task, subject.recipe, subject.tokenizer)
            yield _of_answers(made, made.task, subject.recipe, subject.tokenizer)


def most_tokens(recipe: ResolvedRecipe, tokenizer: Tokenizer) -> int:
    """Maximum number of tokens in one rollout: thinking, the forced phrase of an interruption, and the answer."""
    return tokens_with_phrase(recipe.generation, rollout_phrase(recipe, tokenizer))


def _of_prompts(made: MadeTask, task: Task, recipe: ResolvedRecipe, tokenizer: Tokenizer) -> Finding:
    context, budget = context_of(recipe.model), most_tokens(recipe, tokenizer)
    lengths = sorted(len(prompt.tokens) for prompt in made.prompts())
    half, most = np.quantile(lengths, (0.5, 0.99), method="inverted_cdf").tolist()  # lengths that occur
    found = (
        f"prompts have {half:,} tokens (median), {most:,} (99 %), {lengths[-1]:,} (longest); "
        f"a rollout adds at most {budget:,}"
    )
    if context is None:
        return Finding(part="lengths", check=made.name, level="ok", found=found)
    faults = [
        Fault(
            where=task.written(prompt).where,
            what=f"its prompt has {len(prompt.tokens):,} tokens; {budget:,} more do not fit the context of {context:,}",
        )
        for prompt in made.prompts()
        if len(prompt.tokens) + budget > context
    ]
    most_prompt = context - budget
    advice = f"set the task's max_prompt_tokens to {most_prompt:,}, or lower" if most_prompt > 0 else "lower"
    found += f"; the model's context has {context:,}"
    if faults:
        found = (
            f"{counted(len(faults), 'prompt')} of {len(lengths):,}, with a rollout of {budget:,} tokens, exceed the "
            f"model's context of {context:,}"
        )
    remedy = f"{advice} generation.thinking and generation.answer"
    return of_rows("lengths", made.name, found, faults, remedy, level="error")


def _of_episodes(made: MadeTask, settings: Episodes, budget: int, context: int | None) -> Finding:
    if fault := context_fault(settings, [*made.prompts()], budget, context):
        found, _, remedy = fault.partition("; ")
        return Finding(part="lengths", check=made.name, level="error", found=found, remedy=remedy)
    longest, limit = max(len(prompt.tokens) for prompt in made.prompts()), turn_limit(settings, budget)
    found = f"a first text has at most {counted(longest, 'token')}, a turn {limit:,}"
    found += f", an episode {settings.context_tokens:,}"
    return Finding(part="lengths", check=made.name, level="ok", found=found)


def _of_answers(made: MadeTask, task: Task, recipe: ResolvedRecipe, tokenizer: Tokenizer) -> Finding:
    name, budget = f"{made.name} answers", recipe.generation.answer
    counts = {prompt: answer_length(task, prompt, tokenizer) for prompt in made.prompts()}
    lengths = {prompt: count for prompt, count in counts.items() if count is not None}
    if not lengths:
        return Finding(part="lengths", check=name, level="ok", found="no written answers")
    found = f"the longest written answer has {max(lengths.values()):,} tokens; the answer budget is {budget:,}"
    too_long = {prompt: length for prompt, length in lengths.items() if length > budget}
    if not too_long:
        return Finding(part="lengths", check=name, level="ok", found=found)
    found = (
        f"{len(too_long):,} of {counted(len(lengths), 'written answer')} exceed the answer budget of {budget:,} tokens"
    )
    if isinstance(made.settings, KSmallest | Modular):
        # The budget limits the pass rate on purpose.
        found += f", so no pass rate can exceed {highest_pass_rate(task, tokenizer, budget):.2f}"
        return Finding(part="lengths", check=name, level="ok", found=found)
    faults = (
        Fault(
            where=task.written(prompt).where,
            what=f"its written answer has {length:,} tokens, but only {budget:,} are allowed",
        )
        for prompt, length in too_long.items()
    )
    return of_rows("lengths", name, found, faults, "raise generation.answer")
