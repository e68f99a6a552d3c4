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
