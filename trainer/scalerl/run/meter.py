"""The meter of the evaluator's process, built there from the recipe because tasks cannot be sent to a process."""

from functools import partial
from pathlib import Path

import torch

from scalerl.evaluation.downstream import DownstreamEvaluator
from scalerl.evaluation.drift import GeneratorDrift, PolicyDrift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.evaluation.kept_rollouts import KeptRollouts
from scalerl.generator.make import make_generator, make_vllm_generator
from scalerl.memory.forecast import PromptLengths, evaluation_rows
from scalerl.memory.shape import shape_of
from scalerl.model.build import empty_policy, new_policy, precision_of
from scalerl.model.device import deterministic_on_cpu, device_of
from scalerl.model.policy import frozen_copy
from scalerl.processes.evaluator_process import Meter
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer
from scalerl.weights.hugging_face import Weights


def make_meter(recipe: ResolvedRecipe, seed: int, start: Path) -> Meter:
    """Build the meter of a run that starts from the model folder `start`, with the generator of its recipe.

    With vLLM there is no separate policy: the engine also scores by the start's weights.
    """
    deterministic_on_cpu(device_of(recipe))  # as in a run's own process
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    tasks = all_tasks(recipe.tasks, recipe.evaluation.downstream, tokenizer)
    prompts = PromptLengths.of(recipe, tasks.trained, tasks.downstream)
    rows = evaluation_rows(recipe, shape_of(recipe.model), prompts)
    if recipe.generator.type == "vllm":
        # One extra token: an engine that scores the longest sequence samples one more.
        generator = make_vllm_generator(recipe, start, slots=rows, max_prompt=prompts.measured + 1)
        drift = GeneratorDrift(recipe=recipe, generator=generator, start=partial(_weights_of, recipe, start))
    else:
        policy = new_policy(recipe)
        policy.load_weights(start)
        generator = make_generator(recipe, frozen_copy(policy), slots=rows, max_prompt=prompts.measured)
        drift = PolicyDrift(recipe=recipe, start=policy.start_policy())
    kept = KeptRollouts(tokenizer.reader, recipe, lambda prompt: tasks.trained.written(prompt).answer)
    return Meter(
        generator=generator,
        held_out=HeldOutEvaluator(recipe=recipe, task=tasks.trained, seed=seed, drift=drift, kept=kept),
        kept=kept,
        downstream=DownstreamEvaluator(recipe=recipe, seed=seed, tasks=tasks.downstream),
    )


def _weights_of(recipe: ResolvedRecipe, folder: Path) -> Weights:
    """Weights of the run's start on the host: those of a model folder, or an adapter whose B is 0."""
    if recipe.adapter.type != "none":
        return new_policy(recipe, outline=True).initial_adapter(torch.Generator())
    policy = empty_policy(recipe.model, torch.device("cpu"), precision_of(recipe))
    policy.load_weights(folder)
    return policy.exported_weights()
