"""One token of each row, drawn by inverse CDF from its logits, and its log-probability."""

import numpy as np
from numpy.typing import NDArray

from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.rows import Array, exp
from scalerl.model.kernels.step_tokens import Indices

MOST_WORDS = 4096
"""Largest vocabulary for which one thread is faster than PyTorch's many operators."""


@kernel
def draw_tokens(
    logits_nV: Array, temperature: float, uniform_n: NDArray[np.float64], token_n: Indices, logprob_n: Array
) -> None:
    """The first token v with sum_{w <= v} p_w > u, where p = softmax(logits / temperature); sums are in float64.

    A row with a NaN gets a log-probability of NaN.
    """
    vocabulary = logits_nV.shape[1]
    scaled = np.empty(vocabulary, np.float32)
    weight = np.empty(vocabulary, np.float32)
    for i in range(len(logits_nV)):
        largest = np.float32(-np.inf)
        for v in range(vocabulary):
            scaled[v] = logits_nV[i, v] / np.float32(temperature)
            if not scaled[v] <= largest:
                largest = scaled[v]
        for v in range(vocabulary):
            weight[v] = exp(scaled[v] - largest)
        total = 0.0
        for v in range(vocabulary):
            total += weight[v]
        below, chosen, last = 0.0, -1, 0
        for v in range(vocabulary):
            below += weight[v]
            if weight[v] > 0:
                last = v
                if chosen < 0 and below > uniform_n[i] * total:
                    chosen = v
        token_n[i] = chosen if chosen >= 0 else last
        logprob_n[i] = scaled[token_n[i]] - largest - np.log(total)
