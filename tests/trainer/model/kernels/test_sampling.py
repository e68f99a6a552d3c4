"""Compiled sampling, against NumPy in float64."""

import numpy as np

from scalerl.model.kernels.sampling import draw_tokens

TEMPERATURE = 0.7


def drawn(logits, uniform):
    tokens, logprobs = np.empty(len(logits), np.int64), np.empty(len(logits), np.float32)
    draw_tokens(np.asarray(logits, np.float32), TEMPERATURE, np.asarray(uniform, np.float64), tokens, logprobs)
    return tokens, logprobs


def test_tokens_are_those_of_the_inverse_cdf_and_log_probabilities_of_the_tempered_softmax():
    rng = np.random.default_rng(0)
    logits, uniform = 3 * rng.normal(size=(2000, 23)).astype(np.float32), rng.random(2000)
    weight = np.exp(logits.astype(np.float64) / TEMPERATURE)
    cumulative = np.cumsum(weight / weight.sum(1, keepdims=True), axis=1)
    tokens, logprobs = drawn(logits, uniform)
    np.testing.assert_array_equal(tokens, (cumulative <= uniform[:, None]).sum(1))
    wanted = np.log(weight[np.arange(2000), tokens] / weight.sum(1))
    np.testing.assert_allclose(logprobs, wanted, atol=2e-6)


def test_a_token_of_probability_0_is_never_drawn():
    row = np.array([-np.inf, 0.0, -np.inf, -np.inf])
    tokens, logprobs = drawn(np.tile(row, (3, 1)), [0.0, 0.5, 1 - 2**-53])
    assert tokens.tolist() == [1, 1, 1]
    assert logprobs.tolist() == [0, 0, 0]


def test_nan_is_seen_wherever_it_is():
    logits = np.zeros((5, 4))
    logits[np.arange(4), np.arange(4)] = np.nan
    assert np.isnan(drawn(logits, np.full(5, 0.3))[1]).tolist() == [True] * 4 + [False]
