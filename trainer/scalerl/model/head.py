"""The language-model head: hidden states to logits, and to log-probabilities and entropy of tokens in bounded memory.

    z_v = (h . w_v + b_v) / temperature            l = log sum_v e^z_v       p_v = e^(z_v - l)
    log p(y) = z_y - l                             d log p(y) / dz_v = 1[v = y] - p_v
    H = -sum_v p_v log p_v                         dH / dz_v = -p_v (log p_v + H)

All logits of 14,000 tokens over a vocabulary of 150,000 would take 8 GiB, and several such matrices would be in memory
at once. A pass with more than `logits_at_once` logits therefore computes them in chunks of tokens, and recomputes them
in the backward pass (as in Cut Cross-Entropy, arXiv 2411.09009).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from scalerl.model.exact_product import add_product, is_split, product
from scalerl.model.size import SPLIT_AT_ONCE, logits_at_once


@dataclass(frozen=True, kw_only=True)
class Head:
    """Matrix, bias, precision of their product, and number of parts it is summed in."""

    weight: Tensor
    """[V, hidden]"""
    bias: Tensor | None
    dtype: torch.dtype
    parts: int = 1
    """Parts of the hidden width with a product each, to match another engine's summation order (split-K)."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [..., V]; in BF16 both the product and its result are rounded, as in an unguarded head."""
        bias = None if self.bias is None else self.bias.to(self.dtype)
        factors = hidden.to(self.dtype).chunk(self.parts, -1), self.weight.to(self.dtype).chunk(self.parts, -1)
        first, *others = zip(*factors, strict=True)
        logits = F.linear(*first, bias)
        for part in others:
            logits = logits + F.linear(*part)
        return logits.float()


def token_scores(
    head: Head, hidden: Tensor, tokens: Tensor, *, temperature: float, entropy_gradient: bool
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of `tokens` [...] predicted from `hidden` [..., hidden], and the entropy, both [...].

    Log-probabilities carry a gradient; the entropy does so only with `entropy_gradient`.
    """
    vocabulary = head.weight.shape[0]
    if tokens.numel() * vocabulary > logits_at_once(hidden.device.type) and head.parts == 1:
        flat = hidden.flatten(0, -2), head.weight, head.bias, tokens.flatten()
        chosen, uncertainty = InChunks.apply(*flat, head.dtype, temperature, entropy_gradient)
        return chosen.view_as(tokens), uncertainty.view_as(tokens)
    logprobs_V = (head.logits(hidden) / temperature).log_softmax(-1)
    chosen = logprobs_V.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        uncertainty = entropy(logprobs_V)
    return chosen, uncertainty


def entropy(logprobs_V: Tensor) -> Tensor:
    """H = -sum_v p_v log p_v in nats over the last axis (PPO, arXiv 1707.06347)."""
    return -(logprobs_V.exp() * logprobs_V).sum(-1)


def chunks(num_tokens: int, vocabulary: int, device: torch.device) -> Iterator[slice]:
    """Slices of tokens whose logits are in memory together."""
    size = max(1, logits_at_once(device.type) // vocabulary)
    return (slice(start, start + size) for start in range(0, num_tokens, size))


class InChunks(torch.autograd.Function):
    """Chunked scores of tokens [N] from hidden states [N, hidden]; the weight gradient is accumulated in FP32.

    On a GPU products in FP32 run on tensor cores (`scalerl.model.exact_product`).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        tokens: Tensor,
        dtype: torch.dtype,
        temperature: float,
        entropy_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropy, [N]."""
        matrix = weight.to(dtype)
        chosen, uncertainty, normaliser = (hidden.new_empty(len(tokens), dtype=torch.float32) for _ in range(3))
        for rows in chunks(len(tokens), len(weight), weight.device):
            scaled = _logits(hidden[rows], matrix, bias).div_(temperature)
            normaliser[rows] = scaled.logsumexp(-1)
            logprobs = scaled.sub_(normaliser[rows, None])
            chosen[rows] = logprobs.gather(-1, tokens[rows, None])[:, 0]
            uncertainty[rows] = -logprobs.exp().mul_(logprobs).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, tokens, normaliser, uncertainty)
        ctx.dtype, ctx.temperature, ctx.entropy_gradient = dtype, temperature, entropy_gradient
        if not entropy_gradient:
            ctx.mark_non_differentiable(uncertainty)
        return chosen, uncertainty

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of hidden states, matrix and bias."""
        hidden, weight, bias, tokens, normaliser, uncertainty = ctx.saved_tensors
        of_chosen, of_entropy = gradients
        matrix = weight.to(ctx.dtype)
        of_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        of_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        of_bias = torch.zeros_like(bias, dtype=torch.float32) if bias is not None and ctx.needs_input_grad[2] else None
        for rows in chunks(len(tokens), len(weight), weight.device):
            logprobs = _logits(hidden[rows], matrix, bias).div_(ctx.temperature).sub_(normaliser[rows, None])
            probability = logprobs.exp()
            if ctx.entropy_gradient:
                factor = logprobs.add_(uncertainty[rows, None]).mul_(of_entropy[rows, None])
                of_scaled = probability.mul_(factor.add_(of_chosen[rows, None])).neg_()
            else:
                of_scaled = probability.mul_(-of_chosen[rows, None])
            own = torch.arange(len(of_scaled), device=tokens.device), tokens[rows]
            of_scaled[own] = of_scaled[own] + of_chosen[rows]
            of_logits = of_scaled.div_(ctx.temperature).to(ctx.dtype)
            taken = hidden[rows].to(ctx.dtype)
            if of_hidden is not None:
                of_hidden[rows] = _of_hidden(of_logits, matrix).to(hidden.dtype)
            if of_weight is not None:
                for words in word_slices(matrix):
                    add_product(of_weight[words], of_logits[:, words].float().T, taken.float())
            if of_bias is not None:
                of_bias += of_logits.float().sum(0)
        return (
            of_hidden,
            None if of_weight is None else of_weight.to(weight.dtype),
            None if of_bias is None or bias is None else of_bias.to(bias.dtype),
            *(None,) * 4,
        )


def word_slices(weight: Tensor) -> Iterator[slice]:
    """Slices of the vocabulary whose part of the head's matrix [V, hidden] is split at once; else all of it."""
    vocabulary, width = weight.shape
    size = max(1, SPLIT_AT_ONCE // width) if is_split(weight) else vocabulary
    return (slice(start, start + size) for start in range(0, vocabulary, size))


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Float32 logits [N, V], in the precision of `weight`."""
    if not is_split(weight):
        return Head(weight=weight, bias=bias, dtype=weight.dtype).logits(hidden)
    logits = hidden.new_zeros(len(hidden), len(weight), dtype=weight.dtype)
    for words in word_slices(weight):
        add_product(logits[:, words], hidden.to(weight.dtype), weight[words].mT)
    return logits if bias is None else logits.add_(bias.to(logits.dtype))


def _of_hidden(of_logits: Tensor, weight: Tensor) -> Tensor:
    """Gradient of the hidden states, [N, hidden]."""
    first, *others = word_slices(weight)
    total = product(of_logits[:, first], weight[first])
    for words in others:
        add_product(total, of_logits[:, words], weight[words])
    return total
