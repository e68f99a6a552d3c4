"""Duration of an optimiser step of a cluster by the cost model, before anything has run.

Every slot decodes a rollout of mean length whose cache is half full on average; the trainers share the batch evenly.
PipelineRL generates and trains at once, so a step takes as long as the slower of the two; PPO-off-policy does one after
the other. Evaluation, verification and waiting are not included.
"""

from dataclasses import dataclass

from scalerl.cluster.cost import cost_model
from scalerl.generator.request import StepWork
from scalerl.learner.learner import Update
from scalerl.model.size import ModelSize
from scalerl.recipe import Accelerator, ResolvedRecipe, Virtual

RECOMPUTED = 4 / 3
"""Factor for gradient checkpointing, which runs each block's forward pass twice."""


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Durations of a step's parts: `StepTime(generating_s=48.6, training_s=43.9, pushing_s=0.3, at_once=True,
    devices=80)` takes 48.6 s."""

    generating_s: float
    training_s: float
    pushing_s: float
    at_once: bool
    """True if generators generate while trainers train."""
    devices: int

    @property
    def seconds(self) -> float:
        """Time between two steps."""
        if self.at_once:
            return max(self.generating_s, self.training_s)
        return self.generating_s + self.training_s + self.pushing_s

    @property
    def gpu_hours(self) -> float:
        """GPU-hours of all devices, idle or not."""
        return self.devices * self.seconds / 3600


def step_time(
    recipe: ResolvedRecipe,
    size: ModelSize,
    *,
    trainers: int,
    tensor_parallel: int,
    prompt_tokens: float,
    response_tokens: float,
) -> StepTime:
    """Duration of one step of `recipe` with prompts and responses of these mean lengths.

    A generator on several devices is charged as if each added its full speed.
    """
    cluster = recipe.cluster if recipe.cluster.type == "virtual" else Virtual(device=Accelerator())
    cost = cost_model(cluster, size)
    batch, generators, slots = recipe.batch, recipe.cluster.generators, recipe.cluster.slots
    rollouts = batch.prompts * batch.generations
    length = prompt_tokens + response_tokens
    work = StepWork(sequences=slots, context_tokens=round(slots * (prompt_tokens + response_tokens / 2)))
    prompts = StepWork(
        prefill_tokens=round(batch.prompts * prompt_tokens),
        prefill_context_tokens=round(batch.prompts * prompt_tokens * (prompt_tokens + 1) / 2),
    )
    decode_steps = rollouts * response_tokens / (slots * generators)
    prefill_s = cost.decode_s(prompts, generators) - cost.decode_base_s
    trained = Update(
        trained_tokens=round(recipe.epochs * rollouts * length),
        context_tokens=round(recipe.epochs * rollouts * length * (length + 1) / 2),
        metrics={},
    )
    again = RECOMPUTED if recipe.optimiser.gradient_checkpointing else 1.0
    return StepTime(
        generating_s=(decode_steps * cost.decode_s(work, 1) + prefill_s) / tensor_parallel,
        training_s=again * cost.train_s(trained, trainers),
        pushing_s=cost.push_s,
        at_once=recipe.off_policy.type == "pipeline",
        devices=generators * tensor_parallel + trainers,
    )
