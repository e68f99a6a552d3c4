"""The modelled device's figures by hand."""

import pytest

from scalerl.cluster.cost import cost_model, forward_flops, modelled_positions
from scalerl.generator.request import StepWork
from scalerl.learner.learner import Update
from scalerl.model.size import ModelSize
from scalerl.recipe import Accelerator, Virtual
from scalerl.recipe.cluster import ChargedAttention, FreeAttention

LLAMA_3_8B = ModelSize(  # 32 layers, 32 heads and 8 heads of keys and values, 128 numbers each
    parameters=8_030_261_248,
    active_parameters=8_030_261_248,
    attention_width=32 * 32 * 128,
    cache_width=2 * 32 * 8 * 128,
)
QWEN_3_8B = ModelSize(  # the same with 36 layers
    parameters=8_190_735_360,
    active_parameters=8_190_735_360,
    attention_width=36 * 32 * 128,
    cache_width=2 * 36 * 8 * 128,
)


def dense(parameters):
    return ModelSize(parameters=parameters, active_parameters=parameters, attention_width=64, cache_width=32)


def decoding(sequences, context_tokens):
    """A decode step without prefill."""
    return StepWork(sequences=sequences, prefill_tokens=0, prefill_context_tokens=0, context_tokens=context_tokens)


def test_an_8b_model_on_an_h100_costs_what_the_data_sheet_says():
    # 16 GB of weights over 3.35 TB/s; 16 GFLOP a token over 0.4 x 989 TFLOP/s; 16 GB over a 50 GB/s link.
    cost = cost_model(Virtual(), dense(8_000_000_000))
    assert cost.decode_base_s == pytest.approx(4.776e-3, rel=1e-3)
    assert cost.decode_sequence_s == pytest.approx(4.044e-5, rel=1e-3)
    assert cost.prefill_token_s == pytest.approx(4.044e-5, rel=1e-3)
    assert cost.train_token_s == pytest.approx(1.2133e-4, rel=1e-3)
    assert cost.push_s == pytest.approx(0.32, rel=1e-9)


def test_attention_of_llama_3_8b_on_an_h100_costs_what_the_data_sheet_says():
    # 131,072 bytes over 3.35 TB/s; 4 x 131,072 FLOPs over 0.4 x 989 TFLOP/s.
    cost = cost_model(Virtual(), LLAMA_3_8B)
    assert cost.cached_position_s == pytest.approx(3.9126e-8, rel=1e-4)
    assert cost.attended_position_s == pytest.approx(1.32530e-9, rel=1e-4)


def test_at_7k_tokens_and_108_sequences_keys_and_values_are_seven_times_the_weights():
    # 108 x 7,000 positions of 147,456 bytes are 111 GB; the weights are 16.4 GB.
    cost = cost_model(Virtual(generators=1), QWEN_3_8B)
    step = cost.decode_s(decoding(108, 108 * 7000), 1)
    reading = step - cost.decode_base_s - 108 * cost.decode_sequence_s
    assert reading / cost.decode_base_s == pytest.approx(6.805, rel=1e-3)
    free = cost_model(Virtual(generators=1, attention=FreeAttention()), QWEN_3_8B)
    without = free.decode_s(decoding(108, 108 * 7000), 1)
    assert step / without == pytest.approx((4.890 + 33.276 + 4.471) / (4.890 + 4.471), rel=1e-3)  # milliseconds


def test_a_small_model_plays_a_large_one():
    large = cost_model(Virtual(), LLAMA_3_8B)
    small = ModelSize(parameters=200_000, active_parameters=200_000, attention_width=256, cache_width=512)
    attention = ChargedAttention(width_stands_for=512, cache_stands_for=128)
    played = cost_model(Virtual(parameters_stand_for=8_030_261_248 / 200_000, attention=attention), small)
    assert vars(played) == pytest.approx(vars(large))


def test_without_factors_of_its_own_attention_grows_as_in_a_model_of_the_same_proportions():
    # Ten times as deep and as wide: a thousand times the parameters, a hundred times the width and the cache.
    one = cost_model(
        Virtual(), ModelSize(parameters=10**6, active_parameters=10**6, attention_width=64, cache_width=64)
    )
    played = cost_model(
        Virtual(parameters_stand_for=1000),
        ModelSize(parameters=10**6, active_parameters=10**6, attention_width=64, cache_width=64),
    )
    assert played.decode_base_s == pytest.approx(1000 * one.decode_base_s)
    assert played.cached_position_s == pytest.approx(100 * one.cached_position_s)
    assert played.attended_position_s == pytest.approx(100 * one.attended_position_s)


def test_a_short_answer_plays_a_long_one_but_weights_are_pushed_once():
    one, thousand = cost_model(Virtual(), dense(10**9)), cost_model(Virtual(tokens_stand_for=1000), dense(10**9))
    for name in ("decode_base_s", "decode_sequence_s", "prefill_token_s", "train_token_s"):
        assert getattr(thousand, name) == pytest.approx(1000 * getattr(one, name))
    for name in ("push_s", "cached_position_s", "attended_position_s"):
        assert getattr(thousand, name) == getattr(one, name)


def test_a_token_that_stands_for_many_attends_to_as_many_positions_as_these_do():
    # A sequence of 3 tokens that each stand for 4 has 12: they attend to 1 + 2 + ... + 12 positions.
    assert modelled_positions(3, 1 + 2 + 3, 4) == 12 * 13 / 2
    # The last of them stands for four that attend to 9, 10, 11 and 12.
    assert modelled_positions(1, 3, 4) == 9 + 10 + 11 + 12
    assert modelled_positions(5, 17, 1) == 17
    with pytest.raises(AssertionError, match="each attends at least to itself"):
        modelled_positions(5, 4, 1)


def test_a_decode_step_by_hand():
    # a = 5, b = 2, r = 0.5, c = 3, f = 0.25: seven sequences on three generators, the fullest has three of them.
    device = Accelerator(memory_gb_per_s=4e-9, tflops=4e-12, utilisation=1.0, link_gb_per_s=1.0)
    size = ModelSize(parameters=10, active_parameters=4, attention_width=1, cache_width=1)
    cost = cost_model(Virtual(device=device), size)
    assert (cost.decode_base_s, cost.decode_sequence_s) == pytest.approx((5.0, 2.0))
    assert (cost.cached_position_s, cost.attended_position_s) == pytest.approx((0.5, 1.0))
    work = StepWork(sequences=7, prefill_tokens=3, prefill_context_tokens=6, context_tokens=70)
    # 5 + 3 x 2, prefill of (3 x 2 + 6 x 1) / 3, and 30 of the 70 positions at 0.5.
    assert cost.decode_s(work, 3) == pytest.approx(5 + 6 + 4 + 15)
    # Three generators read the weights; all seven sequences, all prefill and all 70 positions are somebody's work.
    assert cost.decode_busy_s(work, 3) == pytest.approx(15 + 14 + 12 + 35)
    # Two sequences keep two of three generators busy, each with one of them.
    assert cost.decode_s(decoding(2, 20), 3) == pytest.approx(5 + 2 + 5)
    assert cost.decode_busy_s(decoding(2, 20), 3) == pytest.approx(10 + 4 + 10)


def test_an_update_by_hand():
    device = Accelerator(memory_gb_per_s=4e-9, tflops=4e-12, utilisation=1.0, link_gb_per_s=1.0)
    size = ModelSize(parameters=10, active_parameters=4, attention_width=1, cache_width=1)
    cost = cost_model(Virtual(device=device), size)
    update = Update(trained_tokens=9, context_tokens=45, scored_tokens=4, scored_context_tokens=10, metrics={})
    # Per token 6 forward and backward, 2 forward only; per position 3 and 1. Two trainers.
    assert cost.train_s(update, 2) == pytest.approx((54 + 3 * 45 + 8 + 10) / 2)


def test_free_attention_leaves_the_terms_of_the_weights():
    free = cost_model(Virtual(attention=FreeAttention()), LLAMA_3_8B)
    assert (free.cached_position_s, free.attended_position_s) == (0, 0)
    assert free.decode_s(decoding(108, 756_000), 1) == free.decode_base_s + 108 * free.decode_sequence_s


def test_every_figure_of_the_device_matters_where_it_should():
    base = cost_model(Virtual(), dense(10**9))
    memory = cost_model(Virtual(device=Accelerator(memory_gb_per_s=3350 / 2)), dense(10**9))
    flops = cost_model(Virtual(device=Accelerator(tflops=989 / 2)), dense(10**9))
    used = cost_model(Virtual(device=Accelerator(utilisation=0.2)), dense(10**9))
    link = cost_model(Virtual(device=Accelerator(link_gb_per_s=25)), dense(10**9))

    def slower(cost):
        return {name for name, value in vars(cost).items() if value == pytest.approx(2 * vars(base)[name], abs=0)}

    assert slower(memory) == {"decode_base_s", "cached_position_s"}
    by_flops = {"decode_sequence_s", "prefill_token_s", "train_token_s", "attended_position_s"}
    assert slower(flops) == slower(used) == by_flops
    assert slower(link) == {"push_s"}


def test_forward_flops_by_hand():
    # 2 x 1000 for each of 7 tokens; scores and sums over values, 2 x 2 x 16 for each cached position and layer.
    size = ModelSize(parameters=1000, active_parameters=1000, attention_width=3 * 16, cache_width=2 * 3 * 16)
    assert forward_flops(size, 7, 20) == 14_000 + 3 * 64 * 20


def test_experts_that_a_token_is_not_sent_to_are_read_and_pushed_but_not_computed():
    mixtral = ModelSize(parameters=4 * 10**9, active_parameters=10**9, attention_width=64, cache_width=32)
    cost, small, large = (cost_model(Virtual(), size) for size in (mixtral, dense(10**9), dense(4 * 10**9)))
    for name in ("decode_sequence_s", "prefill_token_s", "train_token_s"):
        assert getattr(cost, name) == getattr(small, name)
    for name in ("decode_base_s", "push_s"):
        assert getattr(cost, name) == getattr(large, name)
    assert forward_flops(mixtral, 7, 0) == forward_flops(dense(10**9), 7, 0)
