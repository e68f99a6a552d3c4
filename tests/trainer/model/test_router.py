"""The load-balancing loss of a sequence, by hand and as `transformers` has it."""

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from scalerl.model.router import Routing, balance, sequence_balance


def test_two_tokens_by_hand():
    # Probabilities (.5, .25, .25) and (.25, .5, .25); each token goes to its best expert, so f = (.5, .5, 0).
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]).log()
    loss = sequence_balance(logits, torch.tensor([0, 0]), 1, experts_per_token=1)
    assert loss.tolist() == pytest.approx([3 * (0.5 * 0.375 + 0.5 * 0.375)])


def test_it_is_experts_per_token_where_all_experts_are_used_alike():
    logits = torch.eye(4)[[0, 1, 2, 3]] * 1e-4
    assert float(sequence_balance(logits, torch.zeros(4, dtype=torch.int64), 1, 1)) == pytest.approx(1.0, abs=1e-6)
    assert float(sequence_balance(logits * 0, torch.zeros(4, dtype=torch.int64), 1, 4)) == pytest.approx(4.0)


def test_one_sequence_of_one_layer_is_what_transformers_computes():
    logits = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    ours = sequence_balance(logits, torch.zeros(9, dtype=torch.int64), 1, experts_per_token=2)
    assert float(ours) == pytest.approx(float(load_balancing_loss_func((logits,), 5, 2)), rel=1e-6)


def test_sequences_and_layers_are_taken_one_by_one_and_padding_counts_for_nothing():
    layers = tuple(torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    lengths = torch.tensor([6, 3])
    expected = [
        sum(float(load_balancing_loss_func((layer[row, :length],), 4, 2)) for layer in layers) / 2
        for row, length in enumerate(lengths.tolist())
    ]
    routing = Routing(logits=tuple(layer.flatten(0, 1) for layer in layers), experts_per_token=2)
    assert balance(routing, lengths, torch.Size([2, 6])).tolist() == pytest.approx(expected, rel=1e-5)
    packed = tuple(torch.cat((layer[0], layer[1, :3])) for layer in layers)
    assert balance(Routing(logits=packed, experts_per_token=2), lengths, None).tolist() == pytest.approx(expected)


def test_its_gradient_makes_the_crowded_expert_less_likely():
    logits = torch.tensor([[2.0, 0.0, 0.0]] * 3, requires_grad=True)
    sequence_balance(logits, torch.zeros(3, dtype=torch.int64), 1, experts_per_token=1).sum().backward()
    assert (logits.grad[:, 0] > 0).all()
    assert (logits.grad[:, 1:] < 0).all()
