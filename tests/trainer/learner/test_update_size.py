"""The size of an update equals the distance that PyTorch's own AdamW moved the weights."""

import pytest
import torch

from scalerl.learner.adamw import AdamW
from scalerl.learner.update_size import update_size


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_size_is_the_distance_that_the_weights_moved(decay):
    generator = torch.Generator().manual_seed(1)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((7, 5), (11,))]
    adam = AdamW(weights, lr=0.02, betas=(0.9, 0.95), weight_decay=decay)
    assert update_size(adam) is None
    for _ in range(5):
        before = [weight.detach().double().clone() for weight in weights]
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        adam.step()
        after = [weight.detach().double() for weight in weights]
        moved = sum(float((b - a).square().sum()) for a, b in zip(before, after, strict=True)) ** 0.5
        size = sum(float(b.square().sum()) for b in after) ** 0.5
        assert update_size(adam) == pytest.approx(moved / size, rel=1e-4)
