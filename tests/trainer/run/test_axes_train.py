"""Every recipe file, every value of the axes of a recipe and a mix of made tasks take four steps at scale `smoke`."""

import math

import pytest
import yaml
from places import RECIPES
from recipe_files import read_scale
from trainer.tiny import make_cluster

from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.warm_start import load_or_train
from scalerl.schedules import SCHEDULES
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

pytestmark = pytest.mark.slow

SMOKE = read_scale("smoke")
PPO = {"off_policy": {"type": "ppo_off_policy", "k": 3}}
VALUES = {"type": "value_network"}
CRITIC = {"critic": VALUES, "zero_variance": "keep", "epochs": 2}
AXES = {
    "pipeline 4": {"off_policy": {"type": "pipeline", "k": 4}},
    "off-policy 1": {"off_policy": {"type": "ppo_off_policy", "k": 1}},
    "cispo 4": {"loss": {"type": "cispo", "max_ratio": 4.0}},
    **{loss: {"loss": {"type": loss}} for loss in ("grpo", "dapo", "gspo")},
    "gspo of a small clip": {"loss": {"type": "gspo", "clip_low": 1e-4, "clip_high": 1e-4}},
    "dapo of a high clip": {"loss": {"type": "dapo", "clip_high": 0.32}},
    **{aggregation: {"aggregation": aggregation} for aggregation in ("sample", "token", "sum")},
    **{f"advantage {norm}": {"advantage": norm} for norm in ("prompt", "none", "running")},
    "bf16": {"logits": "bf16"},
    "keep": {"zero_variance": "keep"},
    "uniform": {"curriculum": {"type": "uniform"}},
    "retired after two groups": {"curriculum": {"type": "no_positive_resampling", "min_groups": 2}},
    **{
        f"{pace} by {by}": {"curriculum": {"type": "ordered", "by": by, "pace": pace}}
        for pace in ("linear", "exponential")
        for by in ("difficulty", "length")
    },
    "penalty": {"length_control": {"type": "penalty"}},
    "no length control": {"length_control": {"type": "none"}},
    "phrase": {"length_control": {"type": "interruption", "phrase": "9</think>"}},
    "critic": CRITIC,
    "critic in 16 bits": {**CRITIC, "critic": {**VALUES, "parameters": "bf16"}},
    "critic of its own rate": {**CRITIC, "critic": {**VALUES, "learning_rate": 1e-3}},
    "critic without a clip": {**CRITIC, "critic": {**VALUES, "value_clip": None}},
    "critic and penalty in the reward": {**CRITIC, "kl": {"coefficient": 0.05, "where": "reward"}},
    "eight generations": {"batch": {"prompts": 32, "generations": 4}},
    "resample": {"zero_variance": "resample"},
    "truncated masked": {"truncated": "mask"},
    "entropy bonus": {"entropy_bonus": 0.01},
    "three epochs": {"epochs": 3},
    **{
        f"{estimator} in the {where}": {"kl": {"coefficient": 0.05, "estimator": estimator, "where": where}}
        for estimator in ("k1", "k2", "k3")
        for where in ("loss", "reward")
    },
    **{
        f"{loss} with weights": {"loss": {"type": loss}, "correction": {"type": "truncate"}, **PPO}
        for loss in ("grpo", "dapo", "gspo")
    },
    "sequences masked": {"correction": {"type": "mask", "of": "sequence", "low": 0.9, "high": 1.1}},
    "in a trust region": {"correction": {"type": "trust_region", "low": 1e-6, "high": 1e-6}, **PPO},
    "cosine": {"optimiser": {"schedule": {"type": "cosine", "horizon": 20, "unit": "steps"}}},
    "linear to a tenth": {"optimiser": {"schedule": {"type": "linear", "horizon": 20, "unit": "steps", "final": 0.1}}},
    "unclipped": {"optimiser": {"max_grad_norm": None}},
}


def smoke(**changes) -> ResolvedRecipe:
    """ScaleRL at scale `smoke`; a change of the optimiser is laid over the scale's."""
    optimiser = {**SMOKE["optimiser"], **changes.pop("optimiser", {})}
    return ResolvedRecipe.model_validate({**SMOKE, **changes, "optimiser": optimiser})


def four_steps(recipe, warm_starts):
    policy = new_policy(recipe)
    load_or_train(policy, all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained, recipe, 0, warm_starts)
    cluster = make_cluster(recipe, policy)
    schedule = SCHEDULES[recipe.off_policy.type]
    return policy, [schedule(cluster).update.metrics for _ in range(4)]


def assert_trained(policy, steps):
    assert not any(step["skipped"] for step in steps)
    assert all(math.isfinite(step["loss"]) for step in steps)
    assert all(bool(parameter.isfinite().all()) for parameter in policy.parameters())


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_file_trains_for_four_steps(file, warm_starts):
    recipe = smoke(**yaml.safe_load(file.read_text()))
    assert_trained(*four_steps(recipe, warm_starts))


@pytest.mark.parametrize("name", list(AXES))
def test_every_axis_value_trains_for_four_steps_and_is_another_run(name, warm_starts):
    recipe = smoke(**AXES[name])
    assert recipe.identity(seed=0) != smoke().identity(seed=0)
    assert_trained(*four_steps(recipe, warm_starts))


def test_all_axis_values_have_identities_of_their_own():
    identities = [smoke(**changes).identity(seed=0) for changes in AXES.values()]
    assert len(set(identities)) == len(AXES)


MODULAR = {"type": "modular", "max_operations": 2, "train_prompts": 1024, "validation_prompts": 200}


def test_a_mix_of_math_like_and_program_like_prompts_trains_for_four_steps(warm_starts):
    tasks = [{**SMOKE["tasks"][0], "weight": 2}, {**MODULAR, "weight": 1}]
    assert_trained(*four_steps(smoke(tasks=tasks), warm_starts))
