"""What a device would hold, by hand, and whether the settings that are proposed make it fit."""

import pytest

from scalerl.memory.forecast import PromptLengths
from scalerl.memory.per_device import changed, evaluator_device, generator_device, plans, remedy, trainer_device
from scalerl.memory.shape import ModelShape
from scalerl.recipe import ResolvedRecipe

NUMBER = 8_030_261_248
LLAMA_8B = ModelShape(
    parameters=NUMBER, active_parameters=NUMBER, vocabulary=128_256, hidden=4096, layers=32, heads=32, kv_heads=8,
    head_size=128, mlp=14_336, is_built_in=False,
)  # fmt: skip
PROMPTS = PromptLengths(trained=511, measured=511, most_samples=1)
SETTINGS = {
    "parameters": "mixed",
    "cluster": {"generators": 64, "trainers": 16, "slots": 12},
    "optimiser": {"micro_batch_tokens": 16_384, "gradient_checkpointing": True},
}


def planned(**changes):
    return ResolvedRecipe.model_validate({**SETTINGS, **changes})


def taken(recipe):
    """The recipe, each of whose blocks takes its settings."""
    for name in ("optimiser", "learner", "generator", "cluster"):
        block = getattr(recipe, name)
        type(block).model_validate(block.model_dump())
    return recipe


def deepspeed(**settings):
    return {"type": "deepspeed", "ranks": 16, **settings}


def test_stage_3_shares_out_weights_gradients_and_adamw():
    parts = trainer_device(planned(learner=deepspeed(zero=3)), LLAMA_8B, PROMPTS).parts
    assert parts["weights"] == NUMBER * 4 // 16 == 2_007_565_312
    assert parts["gradients"] == NUMBER * 4 // 16
    assert parts["AdamW"] == NUMBER * 12 // 16  # two moments, and the copy that is stepped
    # Two of 32 layers, and the matrix of embedding or head, whole in FP32: 436 M and 525 M numbers.
    assert parts["gathered layers"] == pytest.approx(4 * (2 * 6_979_588_096 / 32 + 525_336_576), rel=1e-6)


def test_stage_2_keeps_the_weights_whole_and_one_process_keeps_everything():
    parts = trainer_device(planned(learner=deepspeed(zero=2)), LLAMA_8B, PROMPTS).parts
    assert parts["weights"] == NUMBER * 4
    assert (parts["gradients"], parts["AdamW"]) == (NUMBER * 4 // 16, NUMBER * 12 // 16)
    assert "gathered layers" not in parts
    parts = trainer_device(planned(learner={"type": "torch"}), LLAMA_8B, PROMPTS).parts
    assert (parts["weights"], parts["gradients"], parts["AdamW"]) == (NUMBER * 4, NUMBER * 4, NUMBER * 8)


def test_fsdp_shares_out_everything_without_a_second_copy():
    parts = trainer_device(planned(learner={"type": "fsdp", "ranks": 16}), LLAMA_8B, PROMPTS).parts
    assert (parts["weights"], parts["AdamW"]) == (NUMBER * 4 // 16, NUMBER * 8 // 16)


def test_what_is_offloaded_lies_in_the_hosts_memory():
    here = trainer_device(planned(learner=deepspeed(zero=3)), LLAMA_8B, PROMPTS)
    there = trainer_device(planned(learner=deepspeed(zero=3, offload="cpu")), LLAMA_8B, PROMPTS)
    assert here.total - there.total == there.host_bytes == NUMBER * 12 // 16
    assert here.host_bytes == 0


def test_copies_of_the_start_take_as_much_as_the_weights():
    plain = trainer_device(planned(learner=deepspeed(zero=3)), LLAMA_8B, PROMPTS).parts
    of_kl = trainer_device(planned(learner=deepspeed(zero=3), kl={"coefficient": 0.1}), LLAMA_8B, PROMPTS).parts
    assert (plain["frozen copies"], of_kl["frozen copies"]) == (0, plain["weights"])


def test_a_generators_devices_share_weights_and_heads():
    alone = generator_device(planned(), LLAMA_8B, PROMPTS)
    assert alone.parts["weights"] == NUMBER * 2
    # 12 rollouts of 511 + 14,337 tokens; keys and values of 32 layers x 8 heads x 128 numbers of 2 bytes
    assert alone.parts["keys and values"] == 12 * (511 + 14_337) * 2 * 32 * 8 * 128 * 2
    four = generator_device(planned(generator={"type": "vllm", "tensor_parallel": 4}), LLAMA_8B, PROMPTS)
    assert four.devices == 4 * alone.devices == 256
    for name in ("weights", "keys and values"):
        assert four.parts[name] == alone.parts[name] // 4
    of_heads = planned(model={"heads": 16}, generator={"type": "vllm", "tensor_parallel": 16})
    sixteen = generator_device(of_heads, LLAMA_8B, PROMPTS)
    assert sixteen.parts["keys and values"] == alone.parts["keys and values"] // 8  # heads are not split


@pytest.mark.parametrize("device_gb", [40, 80])
@pytest.mark.parametrize("changes", [{"parameters": "fp32", "optimiser": {"micro_batch_tokens": 65_536}}, {}])
def test_the_settings_that_are_proposed_make_it_fit(changes, device_gb):
    recipe = planned(**changes)
    for role, plan in (("trainer", trainer_device), ("generator", generator_device)):
        if plan(recipe, LLAMA_8B, PROMPTS).fits(device_gb):
            continue
        changes_by_path = [
            part.split(": ") for part in remedy(recipe, LLAMA_8B, PROMPTS, role, device_gb).split(" and ")
        ]
        fitting = recipe
        for path, value in changes_by_path:
            fitting = changed(fitting, path, {"true": True}.get(value, int(value) if value.isdigit() else value))
        assert plan(taken(fitting), LLAMA_8B, PROMPTS).fits(device_gb)


def test_what_no_setting_makes_fit_is_said():
    assert "a device with more memory" in remedy(planned(), LLAMA_8B, PROMPTS, "trainer", 1)


def test_an_evaluator_holds_what_a_generator_does_and_what_scores_by_the_start():
    wall = {"type": "wall", "generators": 63, "slots": 12}
    alone = planned(cluster=wall, learner=deepspeed(zero=3), generator={"type": "vllm"})
    assert [one.role for one in plans(alone, LLAMA_8B, PROMPTS)] == ["trainer", "generator"]
    recipe = planned(cluster={**wall, "evaluator": True}, learner=deepspeed(zero=3), generator={"type": "vllm"})
    *_, evaluator = plans(recipe, LLAMA_8B, PROMPTS)
    assert (evaluator.role, evaluator.devices) == ("evaluator", 1)
    longest = 511 + 12288 + 1 + 2048
    # FP32 logits of one sequence and their softmax; one sample in all, so one sequence of keys and values in BF16.
    assert evaluator.parts["log-probs of a sequence"] == 2 * 4 * longest * 128_256
    assert evaluator.parts["keys and values"] == longest * 32 * 8 * 2 * 128 * 2
    built_in = evaluator_device(planned(cluster={**wall, "evaluator": True}), LLAMA_8B, PROMPTS).parts
    assert built_in["weights of the start"] == NUMBER * 4
    assert "log-probs of a sequence" not in built_in
