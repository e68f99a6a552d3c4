"""Variances of a pass rate from the right answers to each prompt: the finite number of answers is one source, the
finite number of prompts the other.

Every evaluation of a study uses the same held-out prompts. Given these, only the answers are random, and a prompt that
is always answered right adds no noise. Late in a run the variance is therefore far below the p (1 - p) / n of fresh
prompts. The choice of held-out prompts is an error too, but all readings of a study share this error: it shifts every
curve equally and affects no comparison.

Counts of several evaluations may have a row for each, if every prompt has two judged answers or more.

Of N prompts, i has c_i right among k_i judged answers; n = sum k_i, p = sum c_i / n (Miller, arXiv 2411.00640).
"""

import numpy as np


def answer_variance(right: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Unbiased variance of p for fixed prompts: sum k_i v_i / n^2 with v_i = c_i (k_i - c_i) / (k_i (k_i - 1)).

    v_i estimates p_i (1 - p_i). A prompt with one answer counts as newly drawn: v_i = p (1 - p).
    """
    n = judged.sum(axis=-1)
    if judged.min() > 1:
        v_k = right * (judged - right) / (judged - 1)
    else:
        p = right.sum() / n
        v_k = np.where(judged > 1, right * (judged - right) / np.maximum(judged - 1, 1), judged * (p * (1 - p)))
    return v_k.sum(axis=-1) / n.astype(float) ** 2


def prompt_variance(right: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Variance of p over sets of N prompts: Var(p_i) / N = (Var(c_i / k_i) - mean of v_i / k_i) / N, at least 0.

    With v_i / k_i = x_i (1 - x_i) / (k_i - 1), x_i = c_i / k_i.

    NaN without two prompts that have two answers each, since one answer cannot distinguish a hard prompt from bad luck.
    """
    if judged.min() <= 1:
        right, judged = right[judged > 1], judged[judged > 1]
    x, k, N = right / judged, judged, judged.shape[-1]
    if N < 2:
        return np.full(x.shape[:-1], np.nan)
    off = x - x.mean(axis=-1, keepdims=True)
    of_answers = (x * (1 - x) / (k - 1)).mean(axis=-1)
    return np.maximum(np.square(off).sum(axis=-1) / (N - 1) - of_answers, 0.0) / N
