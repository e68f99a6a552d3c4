"""The modelled device's figures by hand."""

import pytest

from scalerl.cluster.cost import cost_model, forward_flops
from scalerl.model.size import ModelSize
from scalerl.recipe import Accelerator, Virtual


def dense(parameters):
    return ModelSize(parameters=parameters, active_parameters=parameters, attention_width=1)


def test_an_8b_model_on_an_h100_costs_what_the_data_sheet_says():
    # 16 GB of weights over 3.35 TB/s; 16 GFLOP a token over 0.4 x 989 TFLOP/s; 16 GB over a 50 GB/s link.
    cost = cost_model(Virtual(), dense(8_000_000_000))
    assert cost.decode_base_s == pytest.approx(4.776e-3, rel=1e-3)
    assert cost.decode_sequence_s == pytest.approx(4.044e-5, rel=1e-3)
    assert cost.prefill_token_s == pytest.approx(4.044e-5, rel=1e-3)
    assert cost.train_token_s == pytest.approx(1.2133e-4, rel=1e-3)
    assert cost.push_s == pytest.approx(0.32, rel=1e-9)


def test_a_small_model_plays_a_large_one():
    large = cost_model(Virtual(), dense(8_000_000_000))
    played = cost_model(Virtual(parameters_stand_for=40_000), dense(200_000))
    assert vars(played) == pytest.approx(vars(large))


def test_a_short_answer_plays_a_long_one_but_weights_are_pushed_once():
    one, thousand = cost_model(Virtual(), dense(10**9)), cost_model(Virtual(tokens_stand_for=1000), dense(10**9))
    for name in ("decode_base_s", "decode_sequence_s", "prefill_token_s", "train_token_s"):
        assert getattr(thousand, name) == pytest.approx(1000 * getattr(one, name))
    assert thousand.push_s == one.push_s


def test_every_figure_of_the_device_matters_where_it_should():
    base = cost_model(Virtual(), dense(10**9))
    memory = cost_model(Virtual(device=Accelerator(memory_gb_per_s=3350 / 2)), dense(10**9))
    flops = cost_model(Virtual(device=Accelerator(tflops=989 / 2)), dense(10**9))
    used = cost_model(Virtual(device=Accelerator(utilisation=0.2)), dense(10**9))
    link = cost_model(Virtual(device=Accelerator(link_gb_per_s=25)), dense(10**9))

    def slower(cost):
        return {name for name, value in vars(cost).items() if value == pytest.approx(2 * vars(base)[name])}

    assert slower(memory) == {"decode_base_s"}
    assert slower(flops) == slower(used) == {"decode_sequence_s", "prefill_token_s", "train_token_s"}
    assert slower(link) == {"push_s"}


def test_forward_flops_by_hand():
    # 2 x 1000 for each of 7 tokens; scores and sums over values, 2 x 2 x 16 for each cached position and layer.
    size = ModelSize(parameters=1000, active_parameters=1000, attention_width=3 * 16)
    assert forward_flops(size, 7, 20) == 14_000 + 3 * 64 * 20


def test_experts_that_a_token_is_not_sent_to_are_read_and_pushed_but_not_computed():
    mixtral = ModelSize(parameters=4 * 10**9, active_parameters=10**9, attention_width=1)
    cost, small, large = (cost_model(Virtual(), size) for size in (mixtral, dense(10**9), dense(4 * 10**9)))
    for name in ("decode_sequence_s", "prefill_token_s", "train_token_s"):
        assert getattr(cost, name) == getattr(small, name)
    for name in ("decode_base_s", "push_s"):
        assert getattr(cost, name) == getattr(large, name)
    assert forward_flops(mixtral, 7, 0) == forward_flops(dense(10**9), 7, 0)
