"""The built-in policy's forward pass on cached keys and values.

New prompts are prefilled in the same pass that decodes the other rows: each product then runs once, on all of their
tokens together, which for a tiny model is cheaper than a pass of its own for a handful of prompts.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from scalerl.kv_cache import KVCache, Prefill

if TYPE_CHECKING:
    from scalerl.llama import Llama


class LlamaCache(KVCache):
    """Decodes and prefills a `Llama` in one pass."""

    def __init__(self, policy: "Llama", *, slots: int, positions: int) -> None:
        shape = policy.shape
        size = shape.hidden // shape.heads
        super().__init__(layers=shape.layers, slots=slots, heads=shape.heads, positions=positions, head_size=size)
        self.policy = policy
        self._turns = policy.rotary(torch.arange(positions))

    def logits(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows."""
        with self.policy.products():
            hidden = self._hidden(tokens_n, position_n, prefill)
        return self.policy.logits(hidden)

    def _hidden(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        policy = self.policy
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
        x = policy.embedding[tokens].float()
        last = len(self.kv) - 1
        for layer, block in enumerate(policy.layers()):
            q, k, v = (self._rounded(part) for part in block.project(x, turn))
            parts = []
            if prefill is not None:
                parts.append(self._prefill(layer, q[n:], k[n:], v[n:], prefill))
            cached = self.kv[layer, :n].flatten(0, 1)
            cached.view(-1, size).index_copy_(0, place, torch.stack((k[:n], v[:n]), dim=2).view(-1, size))
            parts.insert(0, self._attend(q[:n], cached, bias_n1T, reach))
            if layer == last:  # nothing reads what prompts would have above their last keys and values
                x, parts = x[:n], parts[:1]
            x = x + F.linear(torch.cat(parts) if len(parts) > 1 else parts[0], block.out)
            x = block.feed_forward(x)
        return policy.final_norm(x)

    def _attend(self, q: Tensor, cached: Tensor, bias_n1T: Tensor, reach: int) -> Tensor:
        """Attention [n, hidden] of one query a row [n, heads, D] to `cached` [n x heads, 2, positions, D].

        In half precision it is rounded where the fused attention of training is: the factors, not the sums, and the
        weights before they are divided by their sum.
        """
        n, heads, size = q.shape
        with torch.autocast("cpu", enabled=False):
            query = (q * size**-0.5).reshape(n * heads, 1, size)
            scores = torch.bmm(query, cached[:, 0, :reach].transpose(1, 2))
            scores = scores.view(n, heads, reach) + bias_n1T
            if self.policy.precision.products == torch.float32:
                return torch.bmm(scores.softmax(-1).view(n * heads, 1, reach), cached[:, 1, :reach]).view(n, -1)
            weights = (scores - scores.amax(-1, keepdim=True)).exp()
            rounded = self._rounded(weights).view(n * heads, 1, reach)
            total = weights.sum(-1).view(n * heads, 1, 1)
            return (torch.bmm(rounded, cached[:, 1, :reach]) / total).view(n, -1)

    def _rounded(self, x: Tensor) -> Tensor:
        """x as a factor of a product in the policy's precision, kept in float32."""
        products = self.policy.precision.products
        return x if products == torch.float32 else x.to(products).float()

    def _prefill(self, layer: int, q: Tensor, k: Tensor, v: Tensor, prefill: Prefill) -> Tensor:
        """Cache one layer of the prompts; their attention [P x W, hidden] from q, k and v [P x W, heads, D]."""
        prompts, width = prefill.tokens.shape
        q, k, v = (part.unflatten(0, (prompts, width)).transpose(1, 2) for part in (q, k, v))
        self.kv[layer, prefill.rows, :, :, :width] = torch.stack((k, v), dim=2)[prefill.prompts]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return attended.transpose(1, 2).flatten(2).flatten(0, 1).float()
