"""Recipes: the paper's defaults, identity, and what is refused."""

import re

import pytest
import yaml
from places import RECIPES
from pydantic import ValidationError

from scalerl.recipe import Recipe, ResolvedRecipe

DEFAULT = ResolvedRecipe()

OTHER_VALUES = {
    "off_policy": {"type": "ppo_off_policy", "k": 8},
    "kv": "recompute",
    "loss": {"type": "dapo"},
    "correction": {"type": "mask"},
    "reward": {"type": "custom", "function": "places:mine", "folder_sha256": ["0" * 64 + " places.py"]},
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
    "learner": {"type": "deepspeed"},
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


def test_the_factors_of_attention_are_part_of_the_identity():
    clusters = [{}, {"attention": {"width_stands_for": 2}}, {"attention": {"cache_stands_for": 2}}]
    recipes = [ResolvedRecipe.model_validate({"cluster": cluster}) for cluster in clusters]
    assert len({recipe.identity(seed=0) for recipe in recipes}) == 3
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ResolvedRecipe.model_validate({"cluster": {"attention": {"type": "free", "width_stands_for": 2}}})
    with pytest.raises(ValidationError, match="greater than or equal"):
        ResolvedRecipe.model_validate({"cluster": {"attention": {"cache_stands_for": 0}}})


def test_a_response_without_thinking_has_one_limit_and_nothing_to_interrupt():
    plain = {"generation": {"thinking": "none", "answer": 50}}
    for control in ({"type": "none"}, {"type": "penalty"}):
        recipe = ResolvedRecipe.model_validate({**plain, "length_control": control})
        assert not recipe.generation.thinks
        assert recipe.generation.max_tokens == 50
        assert recipe.identity(0) != ResolvedRecipe.model_validate({"length_control": control}).identity(0)
    with pytest.raises(ValidationError, match="'interruption' cuts thinking short and has no effect"):
        ResolvedRecipe.model_validate(plain)
    for wrong in ("tags", 0, None):
        with pytest.raises(ValidationError, match=r"generation\.thinking"):
            ResolvedRecipe.model_validate({"generation": {"thinking": wrong}})


def test_device_and_time_between_checkpoints_are_not_part_of_the_identity():
    settings = [{"device": "cpu"}, {"device": "cuda"}, {"device": None}, {"checkpoint_every_s": 0}]
    recipes = [ResolvedRecipe.model_validate(one) for one in settings]
    assert {recipe.identity(seed=0) for recipe in recipes} == {DEFAULT.identity(seed=0)}


def test_identity_is_twelve_hex_digits_and_the_same_in_every_process():
    identity = DEFAULT.identity(seed=0)
    assert re.fullmatch("[0-9a-f]{12}", identity)
    assert identity != DEFAULT.identity(seed=1)
    again = ResolvedRecipe.model_validate_json(DEFAULT.canonical_json())
    assert again.identity(seed=0) == identity


def test_what_holds_the_learner_is_part_of_the_identity_and_on_how_many_processes_is_not():
    def identity(**learner):
        return ResolvedRecipe.model_validate({"learner": learner}).identity(seed=0)

    assert identity(type="torch") == DEFAULT.identity(seed=0)
    assert identity(type="deepspeed", ranks=4, offload="cpu") == identity(type="deepspeed")
    assert len({identity(**learner) for learner in ({"type": "torch"}, {"type": "fsdp"}, *ZERO)}) == 4


ZERO = [{"type": "deepspeed", "zero": 2}, {"type": "deepspeed", "zero": 3}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": "bf16"}, "learner 'deepspeed' keeps weights and moments in FP32, but parameters is 'bf16'"),
        ({"parameters": "fp16"}, "use parameters 'mixed'"),
        (
            {"critic": {"type": "value_network", "parameters": "bf16", "value_clip": None}, "advantage": "batch"},
            "critic.parameters is 'bf16'; use 'fp32'",
        ),
    ],
)
@pytest.mark.parametrize("learner", ZERO)
def test_what_a_sharded_learner_cannot_train_is_refused(changes, message, learner):
    with pytest.raises(ValidationError, match=message):
        ResolvedRecipe.model_validate({"learner": learner, **changes})


WITHOUT_EFFECT = {"device", "checkpoint_every_s", "generator", "adapter"}
"""The first changes results by rounding alone, the second not at all; the others need another model, see below and
`test_adapter_settings`."""


@pytest.mark.parametrize("name", [name for name in ResolvedRecipe.model_fields if name not in WITHOUT_EFFECT])
def test_identity_changes_with_every_field(name):
    assert ResolvedRecipe.model_validate({name: OTHER_VALUES[name]}).identity(seed=0) != DEFAULT.identity(seed=0)


def test_keys_and_values_are_recomputed_only_where_rollouts_are_unfinished():
    with pytest.raises(ValidationError, match="kv 'recompute' has no effect with off_policy 'ppo_off_policy'"):
        ResolvedRecipe.model_validate({"kv": "recompute", "off_policy": {"type": "ppo_off_policy"}})


def test_the_generator_is_part_of_the_identity_unless_it_is_the_built_in_one():
    wide = {"model": {"heads": 2}}
    built_in, vllm = ({**wide, "generator": {"type": kind}} for kind in ("torch", "vllm"))
    identities = [ResolvedRecipe.model_validate(settings).identity(seed=0) for settings in (wide, built_in, vllm)]
    assert identities[0] == identities[1] != identities[2]


def test_a_driver_changes_the_id_only_where_it_is_named_and_runs_ahead_on_the_wall_clock_alone():
    def of(driver, clock):
        generator = {"type": "vllm", "driver": driver}
        return ResolvedRecipe.model_validate(
            {
                "model": {"heads": 2},
                "generator": generator,
                "cluster": {"type": clock},
                "optimiser": {"packing": "none"},
            }
        )

    assert of(None, "virtual").identity(seed=0) == "58f25813c70d"  # as before there was a choice
    assert len({of(driver, "wall").identity(seed=0) for driver in (None, "steps", "async")}) == 3
    with pytest.raises(ValidationError, match=r"driver 'async' chooses as many tokens as .* use cluster.type 'wall'"):
        of("async", "virtual")


def test_a_model_that_vllm_cannot_serve_on_a_cpu_is_refused_when_the_recipe_is_read():
    of_cpu = {"device": "cpu", "generator": {"type": "vllm"}}
    with pytest.raises(ValidationError, match="cannot serve a model with heads of size 16 on a CPU"):
        ResolvedRecipe.model_validate(of_cpu)
    odd = {**of_cpu, "model": {"heads": 2}, "generator": {"type": "vllm", "block_size": 48}}
    with pytest.raises(
        ValidationError, match=r"generator\.block_size 48 is not supported on a CPU; use a multiple of 32"
    ):
        ResolvedRecipe.model_validate(odd)
    shared = {"model": {"heads": 2}, "generator": {"type": "vllm", "tensor_parallel": 3}}
    with pytest.raises(ValidationError, match="the model's 2 heads cannot be divided equally among 3 devices"):
        ResolvedRecipe.model_validate(shared)


@pytest.mark.parametrize(
    "data",
    [
        {"losss": {"type": "cispo"}},
        {"device": "tpu"},
        {"checkpoint_every_s": -1},
        {"length_control": {"type": "interruption", "phrase": "a</think>b</think>"}},
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
        {"loss": {"type": "dapo", "max_weight": 2.0}, "epochs": 2},
        {"correction": {"type": "truncate", "high": 0.0}},
        {"correction": {"type": "truncate", "low": 2.0, "high": 2.0}},
        {"correction": {"type": "mask", "low": 0.0, "high": None}},
        {"correction": {"type": "mask", "of": "tv"}},
        {"correction": {"type": "trust_region", "low": 0.0}},
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


@pytest.mark.parametrize("setting", [{"estimator": "k1"}, {"where": "reward"}])
def test_settings_of_a_kl_penalty_that_is_off_are_refused(setting):
    with pytest.raises(ValidationError, match=r"has no effect while coefficient is 0"):
        ResolvedRecipe.model_validate({"kl": setting})
    ResolvedRecipe.model_validate({"kl": {"coefficient": 0.1, **setting}})


def test_truncated_weights_are_refused_where_the_ratio_they_leave_cannot_move():
    weighed = {"loss": {"type": "grpo"}, "correction": {"type": "truncate"}}
    with pytest.raises(ValidationError, match=r"correction 'truncate': grpo .* its clip has no effect"):
        ResolvedRecipe.model_validate(weighed)
    with pytest.raises(ValidationError, match=r"its clip has no effect"):
        ResolvedRecipe.model_validate({**weighed, "off_policy": {"type": "ppo_off_policy", "k": 1}})
    ResolvedRecipe.model_validate({**weighed, "epochs": 2})
    ResolvedRecipe.model_validate({**weighed, "off_policy": {"type": "ppo_off_policy", "k": 2}})
    ResolvedRecipe.model_validate({**weighed, "loss": {"type": "cispo"}})


NAMES_AT_57CA089 = {"cispo": "dada68d46ef1", "grpo": "588c3464e690", "dapo": "00cda6cc0f57", "gspo": "15567ed88381"}


def test_runs_without_a_correction_keep_their_names():
    # As commit 57ca089 named them, whose losses had a cap of weights.
    names = {
        loss: ResolvedRecipe.model_validate({"loss": {"type": loss}}).identity(seed=0)
        for loss in ("cispo", "grpo", "dapo", "gspo")
    }
    assert names == NAMES_AT_57CA089
