"""The arithmetic that kernels share, against NumPy in float64 and PyTorch's BF16."""

import numpy as np
import torch

from scalerl.model.kernels import rows
from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.lanes import LANES


@kernel
def _exps(x, y):
    for i in range(len(x)):
        y[i] = rows.exp(x[i])


def exps(x):
    y = np.empty(len(x), np.float32)
    _exps(np.asarray(x, np.float32), y)
    return y


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_exponentials_are_right_to_the_last_digits_of_float32():
    x = np.linspace(-86, 87, 100_001).astype(np.float32)
    np.testing.assert_allclose(exps(x), np.exp(x.astype(np.float64)), rtol=2.5e-7)
    assert exps([0.0])[0] == 1.0


def test_exponentials_of_what_is_not_finite_or_out_of_range():
    found = exps([np.nan, np.inf, -np.inf, 200.0, -200.0] + [np.nan] * 64)
    np.testing.assert_array_equal(found, [np.nan, np.inf, 0, np.inf, 0] + [np.nan] * 64)


def test_rounding_to_bf16_is_that_of_pytorch():
    x = np.concatenate((drawn(1_000) * 1e3, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38])).astype(np.float32)
    ties = (np.arange(64, dtype=np.uint32) << 16 | 0x3F808000).view(np.float32)  # halfway between two numbers of BF16
    x = np.concatenate((x, ties))[None]
    y = np.empty_like(x)
    rows.round_factors(x, y)
    np.testing.assert_array_equal(y, torch.from_numpy(x).bfloat16().float().numpy())


def test_norms_rotations_and_gates_are_their_formulas():
    x, weight = drawn(24, LANES), drawn(24, seed=1)
    y = np.empty_like(x)
    rows.norm(x, weight, np.float32(1e-5), y)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(0) + 1e-5) * weight[:, None]
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)

    angle = drawn(12, LANES, seed=2)
    turned = (wide[::2] + 1j * wide[1::2]) * np.exp(1j * angle.astype(np.float64))
    y = x.copy()
    rows.rotate(y, np.cos(angle), np.sin(angle))
    np.testing.assert_allclose(y[::2] + 1j * y[1::2], turned, atol=1e-6)

    y = np.empty((12, LANES), np.float32)
    rows.silu_product(x, y)
    np.testing.assert_allclose(y, wide[:12] / (1 + np.exp(-wide[:12])) * wide[12:], rtol=1e-5, atol=1e-6)


def test_a_lane_that_is_not_a_number_leaves_the_others_alone():
    x = drawn(8, LANES)
    found = []
    for bad in (np.nan, 0.0):
        x[3, 5] = bad
        y = np.empty_like(x)
        rows.norm(x, np.ones(8, np.float32), np.float32(1e-5), y)
        found.append(y)
    assert np.isnan(found[0][:, 5]).all()
    np.testing.assert_array_equal(np.delete(found[0], 5, 1), np.delete(found[1], 5, 1))
