"""Recipes: the paper's defaults, identity, and what is refused."""

import pytest
import yaml
from places import RECIPES
from pydantic import ValidationError
from recipe_files import read_scale

from scalerl.recipe import Recipe, ResolvedRecipe, Scale

DEFAULT = ResolvedRecipe()

OTHER_VALUES = {
    "off_policy": {"type": "ppo_off_policy", "k": 8},
    "loss": {"type": "dapo"},
    "aggregation": "sample",
    "critic": {"type": "value_network", "value_clip": None},
    "advantage": "prompt",
    "logits": "bf16",
    "parameters": "mixed",
    "zero_variance": "keep",
    "curriculum": {"type": "uniform"},
    "length_control": {"type": "penalty"},
    "truncated": "mask",
    "kl": {"coefficient": 0.01},
    "entropy_bonus": 0.01,
    "epochs": 2,
    "model": {"layers": 5},
    "tasks": [{"type": "k_smallest", "max_length": 11}],
    "warm_start": {"steps": 301},
    "batch": {"prompts": 49},
    "generation": {"temperature": 0.9},
    "optimiser": {"learning_rate": 6e-7},
    "cluster": {"trainers": 15},
    "evaluation": {"samples": 17},
    "compute_unit_gpu_hours": 15999.0,
    "threads": 2,
}


def test_the_defaults_are_the_papers():
    # ScaleRL (arXiv 2510.13786), sections 2, 3.2 and A.3.
    d = DEFAULT
    assert (d.off_policy.type, d.off_policy.k) == ("pipeline", 8)
    assert (d.loss.type, d.loss.min_ratio, d.loss.max_ratio) == ("cispo", 0.0, 5.0)
    assert (d.aggregation, d.advantage, d.logits, d.zero_variance) == ("prompt", "batch", "fp32", "drop")
    assert (d.curriculum.type, d.curriculum.threshold) == ("no_positive_resampling", 0.9)
    assert d.length_control.type == "interruption"
    assert d.length_control.earliest * 12 == pytest.approx(10)
    assert d.critic.type == "none"
    assert (d.truncated, d.kl.coefficient, d.entropy_bonus, d.epochs) == ("keep", 0, 0, 1)
    assert (d.batch.prompts, d.batch.generations) == (48, 16)
    o = d.optimiser
    assert (o.learning_rate, o.warmup_steps, o.eps, o.weight_decay) == (5e-7, 100, 1e-15, 0.01)
    assert o.schedule.type == "constant"
    assert (d.cluster.generators, d.cluster.trainers) == (64, 16)
    assert d.evaluation.samples == 16


def test_the_other_published_settings_are_the_defaults_of_their_blocks():
    dapo, grpo, gspo, penalty = (
        ResolvedRecipe.model_validate(data)
        for data in (
            {"loss": {"type": "dapo"}},
            {"loss": {"type": "grpo"}},
            {"loss": {"type": "gspo"}},
            {"length_control": {"type": "penalty"}},
        )
    )
    assert (dapo.loss.clip_low, dapo.loss.clip_high) == (0.2, 0.26)
    assert grpo.loss.clip == 0.2
    assert (gspo.loss.clip_low, gspo.loss.clip_high) == (4e-3, 5e-3)
    assert penalty.length_control.cache == pytest.approx(2 / 14)
    assert ResolvedRecipe.model_validate({"off_policy": {"type": "ppo_off_policy"}}).off_policy.k == 8


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_file_is_valid(file):
    Recipe.model_validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("file", sorted((RECIPES / "scales").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scale_file_is_valid_with_every_recipe(file):
    scale = read_scale(file.stem)
    Scale.model_validate(scale)
    for recipe in RECIPES.glob("*.yaml"):
        ResolvedRecipe.model_validate({**yaml.safe_load(recipe.read_text()), **scale})


def test_the_scalerl_file_writes_the_defaults_out():
    assert Recipe.model_validate(yaml.safe_load((RECIPES / "scalerl.yaml").read_text())) == Recipe()


def test_identity_ignores_how_a_default_was_written():
    same = [
        {},
        {"logits": "fp32"},
        {"loss": {"type": "cispo"}},
        {"loss": {"max_ratio": 5, "type": "cispo", "min_ratio": 0}},
        {"optimiser": {"learning_rate": 0.0000005}, "batch": {"generations": 16}},
        DEFAULT.model_dump(mode="json"),
        dict(reversed(DEFAULT.model_dump().items())),
    ]
    assert {ResolvedRecipe.model_validate(data).identity(seed=0) for data in same} == {DEFAULT.identity(seed=0)}


def test_a_setting_that_is_younger_than_the_runs_leaves_them_their_names():
    # As commit 5b233c1 named it, which knew no device.
    assert DEFAULT.identity(seed=0) == "abcff9d7902a"
    assert ResolvedRecipe.model_validate({"device": "cpu"}).identity(seed=0) == "abcff9d7902a"


def test_a_device_that_nothing_can_train_on_is_refused():
    with pytest.raises(ValidationError, match="Input should be 'cpu'"):
        ResolvedRecipe.model_validate({"device": "cuda"})


def test_the_time_between_checkpoints_is_not_part_of_the_identity():
    often = ResolvedRecipe.model_validate({"checkpoint_every_s": 0})
    assert often.checkpoint_every_s == 0
    assert often.identity(seed=0) == DEFAULT.identity(seed=0)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        ResolvedRecipe.model_validate({"checkpoint_every_s": -1})


def test_identity_is_twelve_hex_digits_and_the_same_in_every_process():
    identity = DEFAULT.identity(seed=0)
    assert len(identity) == 12
    int(identity, 16)
    again = ResolvedRecipe.model_validate_json(DEFAULT.canonical_json())
    assert again.identity(seed=0) == identity


def test_identity_changes_with_the_seed():
    assert len({DEFAULT.identity(seed=seed) for seed in range(100)}) == 100


WITHOUT_EFFECT = {"device", "checkpoint_every_s"}
"""The first has one value; the second changes no result."""


@pytest.mark.parametrize("name", [name for name in ResolvedRecipe.model_fields if name not in WITHOUT_EFFECT])
def test_identity_changes_with_every_field(name):
    assert ResolvedRecipe.model_validate({name: OTHER_VALUES[name]}).identity(seed=0) != DEFAULT.identity(seed=0)


@pytest.mark.parametrize(
    "data",
    [
        {"losss": {"type": "cispo"}},
        {"loss": {"type": "cispo", "clip": 0.2}},
        {"loss": {"type": "ppo"}},
        {"loss": {"clip": 0.2}},
        {"batch": {"prompt": 48}},
        {"cluster": {"device": {"flops": 1.0}}},
        {"tasks": [{"type": "k_smallest", "length": 3}]},
        {"tasks": []},
        {"aggregation": "mean"},
        {"advantage": "group"},
        {"truncated": "drop"},
        {"kl": {"coefficient": -0.1}},
        {"kl": {"coefficient": 0.1, "estimator": "k4"}},
        {"entropy_bonus": -0.01},
        {"epochs": 0},
        {"critic": {"type": "value_network", "gamma": 0.0, "value_clip": None}},
        {"critic": {"type": "value_network", "gae_lambda": 1.1, "value_clip": None}},
        {"critic": {"type": "value_network", "coefficient": 0.5, "value_clip": None}},
        {"critic": {"type": "value_network", "parameters": "fp16", "value_clip": None}},
        {"loss": {"type": "cispo", "max_weight": 2.0}},
        {"loss": {"type": "dapo", "max_weight": 0.0}, "epochs": 2},
        {"optimiser": {"max_grad_norm": 0}},
        {"off_policy": {"type": "pipeline", "k": 0}},
        {"loss": {"type": "cispo", "min_ratio": 2.0, "max_ratio": 1.0}},
        {"optimiser": {"learning_rate": 0}},
        {"optimiser": {"learning_rate": float("nan")}},
        {"generation": {"temperature": float("inf")}},
        {"batch": {"generations": 1}},
        {"model": {"hidden": 24, "heads": 8}},
        {"tasks": [{"type": "k_smallest", "min_length": 9, "max_length": 8}]},
        {"tasks": [{"type": "k_smallest", "symbols": 12, "max_length": 12}]},
    ],
)
def test_what_is_unknown_or_out_of_bounds_is_refused(data):
    with pytest.raises(ValidationError):
        ResolvedRecipe.model_validate(data)


def test_more_slots_than_the_lag_allows_to_fill_are_refused():
    batch = {"prompts": 4, "generations": 4}
    fits = {"generators": 8, "slots": 6}  # 48 slots hold 3 batches of 16
    ResolvedRecipe.model_validate({"off_policy": {"type": "pipeline", "k": 2}, "batch": batch, "cluster": fits})
    with pytest.raises(ValidationError, match="48 decoding slots"):
        ResolvedRecipe.model_validate({"off_policy": {"type": "pipeline", "k": 1}, "batch": batch, "cluster": fits})
    ResolvedRecipe.model_validate({"off_policy": {"type": "ppo_off_policy", "k": 1}, "batch": batch, "cluster": fits})


PUBLISHED = {
    # ScaleRL (arXiv 2510.13786), A.16; what it leaves open is not asserted here.
    "deepseek_grpo": {"off_policy": ("ppo_off_policy", 8), "loss": ("grpo", 0.2), "aggregation": "sample"},
    "qwen_dapo": {
        "off_policy": ("ppo_off_policy", 8), "loss": ("dapo", 0.2, 0.26), "aggregation": "prompt",
        "zero_variance": "drop",
    },
    "magistral": {"off_policy": ("pipeline", 8), "loss": ("dapo", 0.2, 0.26), "aggregation": "prompt"},
    "minimax_m1": {
        "off_policy": ("ppo_off_policy", 8), "loss": ("cispo", 0.0, 5.0), "aggregation": "prompt", "logits": "fp32",
        "zero_variance": "drop",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_recipes_are_what_the_paper_compares(name):
    recipe = Recipe.model_validate(yaml.safe_load((RECIPES / f"{name}.yaml").read_text()))
    for axis, expected in PUBLISHED[name].items():
        value = getattr(recipe, axis)
        if isinstance(expected, tuple):
            value = tuple(x for x in value.model_dump().values() if x is not None)
        assert value == expected, axis
    assert recipe.kl.coefficient == 0


def test_ppo_with_a_critic_is_what_the_write_ups_say():
    # Clipped value loss 0.5, entropy bonus 0.01, 2 to 8 epochs; PPO's own clip is 0.2 (arXiv 1707.06347).
    recipe = Recipe.model_validate(yaml.safe_load((RECIPES / "ppo_critic.yaml").read_text()))
    assert (recipe.critic.value_clip, recipe.entropy_bonus, recipe.loss.clip) == (0.5, 0.01, 0.2)
    assert 2 <= recipe.epochs <= 8


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_file_names_its_source(file):
    comment = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert "arXiv" in " ".join(comment)


@pytest.mark.parametrize("setting", [{"estimator": "k1"}, {"where": "reward"}])
def test_settings_of_a_kl_penalty_that_is_off_are_refused(setting):
    with pytest.raises(ValidationError, match=r"has no effect while coefficient is 0"):
        ResolvedRecipe.model_validate({"kl": setting})
    ResolvedRecipe.model_validate({"kl": {"coefficient": 0.1, **setting}})


def test_truncated_weights_are_refused_where_the_ratio_they_leave_cannot_move():
    loss = {"type": "grpo", "max_weight": 2.0}
    with pytest.raises(ValidationError, match=r"loss.max_weight 2: grpo .* its clip has no effect"):
        ResolvedRecipe.model_validate({"loss": loss})
    with pytest.raises(ValidationError, match=r"its clip has no effect"):
        ResolvedRecipe.model_validate({"loss": loss, "off_policy": {"type": "ppo_off_policy", "k": 1}})
    ResolvedRecipe.model_validate({"loss": loss, "epochs": 2})
    ResolvedRecipe.model_validate({"loss": loss, "off_policy": {"type": "ppo_off_policy", "k": 2}})


def test_a_recipe_cannot_be_changed():
    with pytest.raises(ValidationError):
        DEFAULT.logits = "bf16"
    with pytest.raises(ValidationError):
        DEFAULT.loss.max_ratio = 1.0


def test_every_setting_says_what_it_means():
    def models(model, seen):
        if model not in seen:
            seen.add(model)
            for part in model.__subclasses__():
                models(part, seen)
        return seen

    from scalerl.frozen import Frozen

    missing = [
        f"{model.__name__}.{name}"
        for model in models(Frozen, set())
        if model.__module__ == "scalerl.recipe"
        for name, field in model.model_fields.items()
        if name != "type" and not field.description
    ]
    assert not missing
