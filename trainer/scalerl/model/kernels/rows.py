"""What kernels share: the arithmetic of a Llama block between its products, for tokens side by side.

Arrays are float32, [width, LANES]. `exp` and `bfloat16` are for single numbers; in a loop they compile to vectors.
"""

import numpy as np
from numpy.typing import NDArray

from scalerl.model.kernels.compiled import kernel

Array = NDArray[np.float32]

ZERO, ONE, INFINITY = np.float32(0), np.float32(1), np.float32(np.inf)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUNDS = np.float32(3 * 2**22 + 127)
"""A number added to this one is rounded to an integer, which stands in the lowest bits with 127, the exponent of 1."""
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_LOWEST, _HIGHEST = np.float32(-87), np.float32(88)


def _exp(x: np.float32) -> np.float32:
    """e^x = 2^n e^r with |r| <= ln(2) / 2 by the polynomial of Cephes' expf (Moshier 1989), to 1e-7.

    0 below -87, infinity above 88.
    """
    shifted = x * _LOG2_E + _ROUNDS
    n = shifted - _ROUNDS
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    power = np.int32(np.float32(shifted).view(np.int32) << np.int32(23)).view(np.float32)
    y = (p * r * r + r + ONE) * power
    y = ZERO if x < _LOWEST else y
    return INFINITY if x > _HIGHEST else y


exp = kernel(_exp, fastmath={"contract"})  # reordering would cancel what `_ROUNDS` does


@kernel
def bfloat16(x: np.float32) -> np.float32:
    """x rounded to the nearest number of BF16, ties to even; NaN stays NaN."""
    bits = np.float32(x).view(np.uint32)
    rounded = np.uint32(bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    y = np.uint32(rounded & np.uint32(0xFFFF0000)).view(np.float32)
    return y if x == x else x


@kernel
def silu(x: np.float32) -> np.float32:
    """x / (1 + e^-x)."""
    return x / (ONE + exp(-x))


@kernel
def norm(x_HR: Array, weight_H: Array, eps: np.float32, y_HR: Array) -> None:
    """y = x / sqrt(mean x^2 + eps) weight, each lane by itself."""
    lanes = x_HR.shape[1]
    factor = np.zeros(lanes, np.float32)
    for h in range(len(weight_H)):
        for r in range(lanes):
            factor[r] += x_HR[h, r] * x_HR[h, r]
    for r in range(lanes):
        factor[r] = ONE / np.sqrt(factor[r] / np.float32(len(weight_H)) + eps)
    for h in range(len(weight_H)):
        for r in range(lanes):
            y_HR[h, r] = x_HR[h, r] * factor[r] * weight_H[h]


@kernel
def rotate(x_DR: Array, cos_PR: Array, sin_PR: Array) -> None:
    """Rotate adjacent pairs in place: (x_2p + i x_2p+1) (cos_p + i sin_p), P = D / 2."""
    for p in range(len(cos_PR)):
        for r in range(x_DR.shape[1]):
            real, imaginary = x_DR[2 * p, r], x_DR[2 * p + 1, r]
            x_DR[2 * p, r] = real * cos_PR[p, r] - imaginary * sin_PR[p, r]
            x_DR[2 * p + 1, r] = real * sin_PR[p, r] + imaginary * cos_PR[p, r]


@kernel
def silu_product(gate_up_MR: Array, y_IR: Array) -> None:
    """y = silu(gate) up, where the I rows of gates lie before those of up."""
    inner = len(y_IR)
    for i in range(inner):
        for r in range(y_IR.shape[1]):
            y_IR[i, r] = silu(gate_up_MR[i, r]) * gate_up_MR[inner + i, r]


@kernel
def add(x_HR: Array, y_HR: Array) -> None:
    """x += y."""
    for h in range(len(x_HR)):
        for r in range(x_HR.shape[1]):
            x_HR[h, r] += y_HR[h, r]


@kernel
def transpose(x_NR: Array, y_RN: Array) -> None:
    """y = x^T."""
    for n in range(len(x_NR)):
        for r in range(x_NR.shape[1]):
            y_RN[r, n] = x_NR[n, r]


@kernel
def round_factors(x: Array, y: Array) -> None:
    """y = x rounded to BF16; y may be x."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = bfloat16(x[i, j])
