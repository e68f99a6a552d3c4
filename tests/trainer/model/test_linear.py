"""Products by oneDNN against float64, forward and backward, and where they are left to `F.linear`."""

import pytest
import torch
from torch.nn import functional as F

from scalerl.model import linear as module
from scalerl.model.linear import SMALL_PRODUCT, projected

pytestmark = pytest.mark.skipif(not module._has_onednn(), reason="PyTorch was built without oneDNN")


def made(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def calls(monkeypatch):
    """How often oneDNN was asked for a product."""
    found, product = [], module._product
    monkeypatch.setattr(module, "_product", lambda x, weight: found.append(x.shape) or product(x, weight))
    return found


@pytest.mark.parametrize("shape", [(300, 64), (3, 100, 64)])
@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_product_and_gradients_are_those_of_float64(shape, needs, calls):
    x, weight, of_product = made(*shape, seed=0), made(96, 64, seed=1), made(*shape[:-1], 96, seed=2)
    assert x.numel() * 96 > SMALL_PRODUCT
    found = [x.clone().requires_grad_(needs[0]), weight.clone().requires_grad_(needs[1])]
    product = projected(*found)
    product.backward(of_product)
    wanted = [x.double().requires_grad_(), weight.double().requires_grad_()]
    exact = F.linear(*wanted)
    exact.backward(of_product.double())
    torch.testing.assert_close(product.double(), exact, rtol=0, atol=1e-4)
    for one, other, needed in zip(found, wanted, needs, strict=True):
        if needed:
            torch.testing.assert_close(one.grad.double(), other.grad, rtol=0, atol=3e-4)
        else:
            assert one.grad is None
    assert len(calls) == 1 + sum(needs)


def test_without_a_gradient_it_is_the_same_product():
    x, weight = made(300, 64, seed=0), made(96, 64, seed=1)
    with torch.no_grad():
        plain = projected(x, weight)
    assert torch.equal(projected(x.requires_grad_(), weight), plain)


def test_small_products_half_precision_and_autocast_are_left_to_pytorch(calls):
    x, weight = made(300, 64, seed=0), made(96, 64, seed=1)
    assert torch.equal(projected(x[:2], weight), F.linear(x[:2], weight))
    assert projected(x.bfloat16(), weight.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert projected(x, weight).dtype == torch.bfloat16
    assert calls == []
    projected(x, weight)
    assert len(calls) == 1


@pytest.mark.parametrize("error", [AttributeError, RuntimeError, TypeError])
def test_a_build_whose_operator_is_missing_or_another_uses_pytorchs_own_product(monkeypatch, error):
    def product(*_):
        raise error("private")

    monkeypatch.setattr(module, "_product", product)
    module._has_onednn.cache_clear()
    x, weight = made(300, 64, seed=0), made(96, 64, seed=1)
    try:
        assert torch.equal(projected(x, weight), F.linear(x, weight))
    finally:
        module._has_onednn.cache_clear()
