"""Cached keys and values of the rows a generator decodes, and the forward pass that reads and extends them.

New prompts are prefilled in the same pass that decodes the other rows: each product then runs once, on all of their
tokens together, which for a tiny model is cheaper than a pass of its own for a handful of prompts.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from scalerl.batch import Prompt
from scalerl.model import Policy


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """Prompts to cache, each once, and the rows that get a copy; the last token of a prompt is left to decoding."""

    tokens: Tensor
    """[P, W], right-padded: what a shorter prompt caches beyond its end is overwritten before it is ever seen."""
    rows: Tensor
    """Rows to write."""
    prompts: Tensor
    """Which of the P prompts each of those rows gets."""

    @classmethod
    def of(cls, new: dict[Prompt, list[int]]) -> "Prefill":
        """The rows that each new prompt is to be copied to."""
        width = max(len(prompt.tokens) for prompt in new) - 1
        padded = [prompt.tokens[:-1] + (0,) * (width - len(prompt.tokens) + 1) for prompt in new]
        return cls(
            tokens=torch.tensor(padded, dtype=torch.int64).view(len(new), width),
            rows=torch.tensor([row for rows in new.values() for row in rows]),
            prompts=torch.tensor([i for i, rows in enumerate(new.values()) for _ in rows]),
        )


class KVCache:
    """Keys and values [layers, S, heads, 2, positions, D] of S rows; active rows are the first ones."""

    def __init__(self, policy: Policy, *, slots: int, positions: int) -> None:
        shape = policy.shape
        self.positions = positions
        self.kv = torch.zeros(shape.layers, slots, shape.heads, 2, positions, shape.hidden // shape.heads)
        self._turns = policy.rotary(torch.arange(positions))

    def move(self, target: list[int], source: list[int]) -> None:
        """Copy rows."""
        self.kv[:, target] = self.kv[:, source]

    def logits(self, policy: Policy, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows, which stands at `position_n`.

        Keys and values of these tokens and of the prompts to prefill are cached on the way.
        """
        n, heads, size = len(tokens_n), policy.shape.heads, self.kv.shape[-1]
        reach = int(position_n.max()) + 1
        place = (torch.arange(n * heads * 2).view(n, -1) * self.positions + position_n[:, None]).flatten()
        unseen_n1T = (torch.arange(reach) > position_n[:, None])[:, None]
        bias_n1T = torch.zeros(n, 1, reach).masked_fill_(unseen_n1T, float("-inf"))
        turn, tokens = self._turns[position_n], tokens_n
        if prefill is not None:
            prompts, width = prefill.tokens.shape
            tokens = torch.cat((tokens_n, prefill.tokens.flatten()))
            turn = torch.cat((turn, self._turns[:width].repeat(prompts, 1, 1, 1)))
        x = policy.embedding[tokens]
        last = len(self.kv) - 1
        for layer, block in enumerate(policy.layers()):
            q, k, v = block.project(x, turn)
            parts = []
            if prefill is not None:
                parts.append(self._prefill(layer, q[n:], k[n:], v[n:], prefill))
            cached = self.kv[layer, :n].flatten(0, 1)
            cached.view(-1, size).index_copy_(0, place, torch.stack((k[:n], v[:n]), dim=2).view(-1, size))
            query = (q[:n] * size**-0.5).reshape(n * heads, 1, size)
            scores = torch.bmm(query, cached[:, 0, :reach].transpose(1, 2))
            weights = (scores.view(n, heads, reach) + bias_n1T).softmax(-1)
            parts.insert(0, torch.bmm(weights.view(n * heads, 1, reach), cached[:, 1, :reach]).view(n, -1))
            if layer == last:  # nothing reads what prompts would have above their last keys and values
                x, parts = x[:n], parts[:1]
            x = x + F.linear(torch.cat(parts) if len(parts) > 1 else parts[0], block.out)
            x = block.feed_forward(x)
        return policy.logits(policy.final_norm(x))

    def _prefill(self, layer: int, q: Tensor, k: Tensor, v: Tensor, prefill: Prefill) -> Tensor:
        """Cache one layer of the prompts; their attention [P x W, hidden] from q, k and v [P x W, heads, D]."""
        prompts, width = prefill.tokens.shape
        q, k, v = (part.unflatten(0, (prompts, width)).transpose(1, 2) for part in (q, k, v))
        self.kv[layer, prefill.rows, :, :, :width] = torch.stack((k, v), dim=2)[prefill.prompts]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return attended.transpose(1, 2).flatten(2).flatten(0, 1)
