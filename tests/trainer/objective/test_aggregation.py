"""Weights of the averages and of the sum, by hand."""

import pytest
import torch
from trainer.tiny import weights_of

from scalerl.objective.aggregation import AGGREGATIONS

# Two prompts with two samples each: 1 and 3 tokens, 2 and 2 tokens; one masked token inside sample 1.
MASK = torch.tensor([[1, 0, 0, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]], dtype=torch.bool)
GROUP = torch.tensor([0, 0, 1, 1])


def close(result, expected):
    torch.testing.assert_close(result, torch.tensor(expected), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("name", "a", "b", "c"),
    [
        ("token", 1 / 8, 1 / 8, 1 / 8),
        ("sample", 1 / 4, 1 / 12, 1 / 8),
        ("prompt", 1 / 8, 1 / 8, 1 / 8),  # each prompt has four tokens in all, worth 1/2 together
        ("sum", 1.0, 1.0, 1.0),
        ("constant", 1 / 40, 1 / 40, 1 / 40),  # four samples, ten tokens at most
    ],
)
def test_weights_by_hand(name, a, b, c):
    close(weights_of(name, MASK, GROUP), [[a, 0, 0, 0], [b, 0, b, b], [c, c, 0, 0], [0, c, c, 0]])


def test_prompt_average_does_not_favour_prompts_with_long_answers():
    mask = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=torch.bool)
    weight = weights_of("prompt", mask, torch.tensor([0, 1, 1]))
    close(weight, [[1 / 2, 0, 0, 0], [1 / 16] * 4, [1 / 16] * 4])


@pytest.mark.parametrize("name", list(AGGREGATIONS))
def test_a_sample_without_tokens_of_its_own_is_not_counted(name):
    mask = torch.cat([MASK, torch.zeros(1, 4, dtype=torch.bool)])
    with_empty = weights_of(name, mask, torch.tensor([0, 0, 1, 1, 2]))
    torch.testing.assert_close(with_empty[:4], weights_of(name, MASK, GROUP), rtol=0, atol=0)
    assert with_empty[4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["prompt", "sample", "token"])
def test_weights_of_an_average_sum_to_one(name):
    assert weights_of(name, MASK, GROUP).sum().item() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", list(AGGREGATIONS))
def test_a_batch_without_any_own_token_weighs_nothing(name):
    weight = weights_of(name, torch.zeros(2, 3, dtype=torch.bool), torch.tensor([0, 1]))
    assert weight.tolist() == [[0, 0, 0], [0, 0, 0]]
