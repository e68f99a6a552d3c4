"""Products of split factors, against products in float64."""

import numpy as np
import pytest
import torch

from scalerl.model import exact_product
from scalerl.model.exact_product import DROPPED_BITS, add_product, in_two_parts, product


def drawn(*shape, seed):
    """Numbers of many sizes."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * 10 ** torch.empty(*shape).uniform_(-6, 6, generator=generator)


def rounded(x):
    """Rounded to 10 bits of mantissa, as a tensor core reads a factor; by NumPy, in float64."""
    fraction, exponent = np.frexp(x.double().numpy())
    return torch.from_numpy(np.ldexp(np.round(fraction * 2**11) / 2**11, exponent))


def test_a_factor_is_its_rounded_part_and_the_exact_rest():
    x = drawn(50, 40, seed=0)
    for given in (x, x.mT):
        large, small = in_two_parts(given)
        assert torch.equal(large + small, given)
        assert not (large.view(torch.int32) & ((1 << DROPPED_BITS) - 1)).any()
        is_rounded = (large.double() - rounded(given)).abs() <= rounded(given).abs() * 1e-12
        assert is_rounded.float().mean() > 0.99  # ties may round either way
        assert float((small.abs() / given.abs()).max()) <= 2**-11


def test_what_tensor_cores_leave_out_is_a_millionth_of_a_millionth():
    """The three products as a tensor core computes them: factors rounded to 10 bits, sums exact."""
    a, b = drawn(20, 300, seed=1), drawn(300, 10, seed=2)
    (a1, a2), (b1, b2) = ([rounded(part) for part in in_two_parts(one)] for one in (a, b))
    found = a1 @ b1 + a1 @ b2 + a2 @ b1
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    assert float(((found - exact).abs() / size).max()) < 2**-21
    assert float(((a1 @ b1 - exact).abs() / size).max()) > 2**-16  # what one product in TF32 gives


@pytest.mark.parametrize("on_tensor_cores", [False, True])
def test_three_products_and_one_are_the_product(on_tensor_cores, monkeypatch):
    monkeypatch.setattr(exact_product, "is_split", lambda _: on_tensor_cores)
    a, b, total = drawn(6, 30, seed=3) / 1e3, drawn(30, 4, seed=4) / 1e3, torch.ones(6, 4)
    exact, size = a.double() @ b.double(), float((a.double().abs() @ b.double().abs()).max())
    before = torch.backends.cuda.matmul.allow_tf32
    for right in (b, b.mT.contiguous().mT):
        torch.testing.assert_close(product(a, right).double(), exact, rtol=0, atol=size * 2**-22)
        sums = total.clone()
        add_product(sums, a, right)
        torch.testing.assert_close(sums.double(), exact + 1, rtol=0, atol=size * 2**-22)
    assert torch.backends.cuda.matmul.allow_tf32 == before
