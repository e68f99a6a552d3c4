"""The meter of the evaluator's process, built there from the recipe because tasks cannot be sent between processes."""

from functools import partial
from pathlib import Path

import torch

from scalerl.evaluation.downstream import DownstreamEvaluator
from scalerl.evaluation.drift import Drift, generator_drift, policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.evaluation.meter import Meter
from scalerl.generator.generator import Generator
from scalerl.generator.make import make_generator, make_vllm_generator, with_episodes
from scalerl.memory.forecast import PromptLengths, evaluation_rows
from scalerl.memory.shape import shape_of
from scalerl.model.build import empty_policy, new_policy, precision_of
from scalerl.model.device import deterministic_on_cpu, device_of
from scalerl.model.policy import frozen_copy
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Tasks, all_tasks
from scalerl.tokens import make_tokenizer
from scalerl.tokens.reader import Reader
from scalerl.weights.hugging_face import Weights


def make_meter(recipe: ResolvedRecipe, seed: int, start: Path) -> tuple[Generator, Meter]:
    """Build the generator of the recipe, and the meter of a run that starts from the model folder `start`.

    With vLLM there is no separate policy: the engine also scores by the start's weights.
    """
    deterministic_on_cpu(device_of(recipe))  # as in a run's own process
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    tasks = all_tasks(recipe.tasks, recipe.evaluation.downstream, tokenizer)
    prompts = PromptLengths.of(recipe, tasks.trained, tasks.downstream)
    rows = evaluation_rows(recipe, shape_of(recipe.model), prompts)
    if recipe.generator.type == "vllm":
        # One extra token: an engine that scores the longest sequence samples one more.
        made = partial(make_vllm_generator, recipe, start, slots=rows, max_prompt=prompts.measured + 1)
        generator = with_episodes(made, recipe, clock="off")
        drift = partial(generator_drift, generator=generator, start=partial(_weights_of, recipe, start))
    else:
        policy = new_policy(recipe)
        policy.load_weights(start)
        made = partial(make_generator, recipe, frozen_copy(policy), slots=rows, max_prompt=prompts.measured)
        generator = with_episodes(made, recipe, clock="off")
        drift = partial(policy_drift, start=policy.start_policy())
    return generator, meter_of(recipe, seed, tasks, tokenizer.reader, drift)


def meter_of(recipe: ResolvedRecipe, seed: int, tasks: Tasks, reader: Reader, drift: Drift) -> Meter:
    """The meter of a run with these tasks."""
    return Meter(
        held_out=HeldOutEvaluator(recipe=recipe, task=tasks.trained, seed=seed, drift=drift, reader=reader),
        downstream=DownstreamEvaluator(recipe=recipe, seed=seed, tasks=tasks.downstream),
    )


def _weights_of(recipe: ResolvedRecipe, folder: Path) -> Weights:
    """Weights of the run's start on the host: those of a model folder, or an adapter whose B is 0."""
    if recipe.adapter.type != "none":
        return new_policy(recipe, outline=True).initial_adapter(torch.Generator())
    policy = empty_policy(recipe.model, torch.device("cpu"), precision_of(recipe))
    policy.load_weights(folder)
    return policy.exported_weights()
