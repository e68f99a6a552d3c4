"""How long a step takes, by hand from the data sheet."""

import pytest

from scalerl.cluster.step_time import step_time
from scalerl.model.size import ModelSize
from scalerl.recipe import ResolvedRecipe

LLAMA_3_8B = ModelSize(
    parameters=8_030_261_248,
    active_parameters=8_030_261_248,
    attention_width=32 * 32 * 128,
    cache_width=2 * 32 * 8 * 128,
)
BANDWIDTH, FLOPS = 3350e9, 0.4 * 989e12
CLUSTER = {"cluster": {"generators": 64, "trainers": 16, "slots": 12}}


def time_of(size=LLAMA_3_8B, tensor_parallel=1, **changes):
    recipe = ResolvedRecipe.model_validate({**CLUSTER, **changes})
    return step_time(
        recipe, size, trainers=16, tensor_parallel=tensor_parallel, prompt_tokens=256, response_tokens=7168
    )


def test_a_step_of_the_papers_8b_run_by_hand():
    found = time_of()
    # All 768 rollouts decode at once: 7,168 steps, each of which reads the weights and 12 caches of 3,840 tokens.
    reading = (2 * 8_030_261_248 + 12 * 3840 * 131_072) / BANDWIDTH
    multiplying = 12 * 2 * 8_030_261_248 / FLOPS
    prefill = 48 * (2 * 8_030_261_248 * 256 + 4 * 131_072 * 256 * 257 / 2) / FLOPS / 64
    assert found.generating_s == pytest.approx(7168 * (reading + multiplying) + prefill, rel=1e-6)
    tokens, length = 768 * 7424, 7424
    flops = 6 * 8_030_261_248 * tokens + 3 * 4 * 131_072 * 768 * length * (length + 1) / 2
    assert found.training_s == pytest.approx(flops / FLOPS / 16, rel=1e-6)
    assert found.seconds == max(found.generating_s, found.training_s)
    assert found.gpu_hours == pytest.approx(80 * found.seconds / 3600)


def test_the_papers_8b_run_takes_about_the_gpu_hours_that_it_took():
    # ScaleRL A.7: an epoch of 53,000 problems, 48 a step, is about 1.5k GPU-hours. Checkpointing as in scale `8b`.
    published = 1500 / (53_000 / 48)
    found = time_of(optimiser={"gradient_checkpointing": True}).gpu_hours
    assert found / published == pytest.approx(1.06, abs=0.01)


def test_off_policy_takes_turns_and_checkpointing_a_third_more():
    plain, turns = time_of(), time_of(off_policy={"type": "ppo_off_policy"})
    assert turns.seconds == pytest.approx(plain.generating_s + plain.training_s + plain.pushing_s)
    again = time_of(optimiser={"gradient_checkpointing": True})
    assert again.training_s == pytest.approx(plain.training_s * 4 / 3)


def test_a_generator_over_several_devices_is_as_many_times_faster():
    one, four = time_of(), time_of(tensor_parallel=4)
    assert four.generating_s == pytest.approx(one.generating_s / 4)
    assert (one.devices, four.devices) == (80, 64 * 4 + 16)
