"""What a pass rate errs by, from the right answers to each prompt: because answers are few, and because prompts are.

Every evaluation of a study asks the same held-out prompts. Given these, only the answers are drawn anew, and a prompt
that is always answered right adds no noise: late in a run the variance is far below the p (1 - p) / n of prompts drawn
anew with each answer. Which prompts were held out is an error too, but one that all readings of a study share. It moves
every curve alike and decides no comparison.

Of N prompts, i has c_i right among k_i judged answers; n = sum k_i, p = sum c_i / n (Miller, arXiv 2411.00640).
"""

import numpy as np


def answer_variance(right: np.ndarray, judged: np.ndarray) -> float:
    """Variance of p given its prompts, without bias: sum k_i v_i / n^2 with v_i = c_i (k_i - c_i) / (k_i (k_i - 1)).

    v_i estimates p_i (1 - p_i). One answer cannot, and counts as if its prompt were drawn anew: v_i = p (1 - p).
    """
    n = judged.sum()
    p = right.sum() / n
    v = np.where(judged > 1, right * (judged - right) / np.maximum(judged * (judged - 1), 1), p * (1 - p))
    return float(np.sum(judged * v)) / float(n) ** 2


def prompt_variance(right: np.ndarray, judged: np.ndarray) -> float:
    """Variance of p over draws of N other prompts: Var(p_i) / N = (Var(c_i / k_i) - mean of v_i / k_i) / N, at least 0.

    NaN without two prompts that have two answers each, as one answer does not tell a hard prompt from bad luck.
    """
    several = judged > 1
    c, k = right[several], judged[several]
    if k.size < 2:
        return float("nan")
    of_answers = float(np.mean(c * (k - c) / (k**2 * (k - 1))))
    return max(float(np.var(c / k, ddof=1)) - of_answers, 0.0) / k.size
