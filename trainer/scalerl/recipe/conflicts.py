"""Settings of a recipe and a scale that contradict each other, or leave one another without effect."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scalerl.recipe.adapter import refuse_unfit
from scalerl.recipe.axes import Cispo
from scalerl.recipe.generator import refuse_on_cpu, refuse_split
from scalerl.recipe.own import OwnLoss

if TYPE_CHECKING:
    from scalerl.recipe.resolved import ResolvedRecipe


def conflicts(recipe: "ResolvedRecipe") -> Iterator[str]:
    """Each conflict in a sentence with its remedy; a part may raise ValueError with its own."""
    yield from _of_clock(recipe)
    yield from _of_policy(recipe)
    yield from _of_engines(recipe)
    found: dict[str, tuple[str, str]] = {}
    for setting, own in recipe.own.items():
        for name, sha256 in own.files.items():
            other, its_sha256 = found.setdefault(name, (setting, sha256))
            if its_sha256 != sha256:
                yield (
                    f"{setting}: function {own.function!r} and that of {other} use different files named {name}; give "
                    f"one of them another name"
                )


def _of_clock(recipe: "ResolvedRecipe") -> Iterator[str]:
    in_flight, k, batch = recipe.cluster.generators * recipe.cluster.slots, recipe.off_policy.k, recipe.batch
    most = (k + 1) * batch.prompts * batch.generations
    if in_flight > most and recipe.off_policy.type == "pipeline":
        yield (
            f"cluster: {in_flight} decoding slots hold more than k + 1 = {k + 1} batches of {batch.prompts} x "
            f"{batch.generations} rollouts, so most slots could never be filled; use at most {most}"
        )
    if recipe.kv == "recompute" and recipe.off_policy.type == "ppo_off_policy":
        yield (
            "kv 'recompute' has no effect with off_policy 'ppo_off_policy': no rollout is unfinished when weights "
            "change; remove kv, or use off_policy 'pipeline'"
        )


def _of_policy(recipe: "ResolvedRecipe") -> Iterator[str]:
    loss, critic, has_one_step = recipe.loss, recipe.critic, recipe.steps_of_a_round == 1
    if recipe.corrects_by_start and has_one_step and not isinstance(loss, Cispo | OwnLoss):
        yield (
            f"correction {recipe.correction.type!r}: {loss.type} then clips pi_train / pi_start, which is 1 when a "
            f"round has one optimiser step, so its clip has no effect; use epochs of at least 2, ppo_off_policy with k "
            f"of at least 2, or loss cispo, which has the same gradient"
        )
    if critic.type != "none" and critic.value_clip is not None and has_one_step:
        yield (
            f"critic.value_clip {critic.value_clip:g} has no effect when a round has one optimiser step, because "
            f"values have not changed since its start; set value_clip: null, or use epochs of at least 2, or "
            f"ppo_off_policy with k of at least 2"
        )
    if recipe.length_control.type == "interruption" and not recipe.generation.thinks:
        yield (
            "length_control 'interruption' cuts thinking short and has no effect with generation.thinking 'none'; "
            "use length_control.type 'none', which truncates a response after generation.answer tokens, or "
            "'penalty'; or set generation.thinking to a number of tokens"
        )
    if recipe.optimiser.packing == "prompts" and recipe.router_loss > 0:
        yield (
            "optimiser.packing 'prompts' computes a prompt once for several sequences, but model.router_loss is "
            "computed per sequence; use packing 'sequences', or a router_loss of 0"
        )


def _of_engines(recipe: "ResolvedRecipe") -> Iterator[str]:
    model, generator, learner, critic = recipe.model, recipe.generator, recipe.learner.type, recipe.critic
    if generator.type == "torch" and model.type != "pretrained" and model.hidden % generator.head_parts:
        yield (
            f"generator.head_parts {generator.head_parts}: a hidden width of {model.hidden} cannot be divided into "
            f"this many equal parts; use a divisor of it"
        )
    if generator.type == "vllm" and model.type != "pretrained":
        refuse_split(generator, heads=model.heads, kv_heads=model.heads, mlp=model.mlp)
        if recipe.device == "cpu":
            refuse_on_cpu(generator, model.hidden // model.heads)
    if generator.type == "vllm" and generator.driver == "async" and recipe.cluster.type == "virtual":
        yield (
            "generator.driver 'async' chooses as many tokens as the machine has time for, but cluster.type "
            "'virtual' is a clock that counts decode steps; remove driver, or use cluster.type 'wall'"
        )
    if learner != "torch" and recipe.parameters not in ("fp32", "mixed"):
        yield (
            f"learner {learner!r} keeps weights and moments in FP32, but parameters is {recipe.parameters!r}; use "
            f"parameters 'mixed', whose products are BF16, or 'fp32', or learner 'torch'"
        )
    if learner != "torch" and critic.type != "none" and critic.parameters != "fp32":
        yield (
            f"learner {learner!r} keeps weights and moments in FP32, but critic.parameters is {critic.parameters!r}; "
            f"use 'fp32', or learner 'torch'"
        )
    if recipe.adapter.type != "none":
        refuse_unfit(recipe.adapter, model)
        if critic.type != "none":
            yield (
                f"critic {critic.type!r} trains a whole network of its own, but adapter.type is "
                f"{recipe.adapter.type!r}; use critic type 'none', or adapter type 'none'"
            )
