"""Weights that reduce per-token losses to one number: loss = sum over tokens of weight x loss.

Three averages have weights that sum to 1; the fourth choice is the plain sum.

The weights come from the whole batch, so the losses and gradients of micro-batches add up exactly to those of the
batch. Tokens off the mask have weight 0. Samples and prompts without own tokens do not count in the mean.
"""

from torch import Tensor


def token_average(mask_BT: Tensor, group_B: Tensor) -> Tensor:
    """1 / number of all tokens, [B, T] (DAPO, arXiv 2503.14476)."""
    return mask_BT / mask_BT.sum().clamp(min=1)


def sample_average(mask_BT: Tensor, group_B: Tensor) -> Tensor:
    """1 / (number of samples x tokens of the sample), [B, T] (GRPO, arXiv 2402.03300)."""
    tokens_B = mask_BT.sum(dim=1)
    num_samples = (tokens_B > 0).sum().clamp(min=1)
    return mask_BT / (num_samples * tokens_B.clamp(min=1)).unsqueeze(1)


def prompt_average(mask_BT: Tensor, group_B: Tensor) -> Tensor:
    """1 / (number of prompts x tokens of all the prompt's samples), [B, T] (ScaleRL §3.2)."""
    tokens_B = mask_BT.sum(dim=1)
    tokens_P = tokens_B.new_zeros(int(group_B.max()) + 1).index_add(0, group_B, tokens_B)
    num_prompts = (tokens_P > 0).sum().clamp(min=1)
    return mask_BT / (num_prompts * tokens_P[group_B].clamp(min=1)).unsqueeze(1)


def token_sum(mask_BT: Tensor, group_B: Tensor) -> Tensor:
    """1, [B, T]: the plain sum over all tokens of the batch."""
    return mask_BT.float()


AGGREGATIONS = {"prompt": prompt_average, "sample": sample_average, "token": token_average, "sum": token_sum}
