"""The built-in policy: a Llama decoder whose weights are Hugging Face's, written for small batches on a CPU.

`transformers` describes and stores it (`LlamaConfig`, `model.safetensors` under Llama's own names); the arithmetic is
here, because a decode step of a tiny model is all overhead: query, key and value are one product, so are gate and up,
and the two numbers that a rotary position turns lie side by side, so that turning them is one complex product.
A test compares the logits with `LlamaForCausalLM`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from scalerl.cost import ModelSize
from scalerl.llama_cache import LlamaCache
from scalerl.packing import Packing
from scalerl.policy import FP32, Policy, Precision, States
from scalerl.recipe import LlamaModel

EPS = 1e-6
ROPE_BASE = 10000.0
MAX_POSITIONS = 4096
"""Rotary positions have no end of their own; servers reserve memory for as many as the configuration says."""


class Block(nn.Module):
    """One decoder block: attention over rotary positions, then a gated feed-forward layer, each behind an RMS norm."""

    def __init__(self, shape: LlamaModel) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.Parameter(torch.ones(shape.hidden))
        self.qkv = nn.Parameter(torch.empty(3 * shape.hidden, shape.hidden))
        """Rows by head; in a head those of the query, the key and the value; see `fuse_qkv`."""
        self.out = nn.Parameter(torch.empty(shape.hidden, shape.hidden))
        self.mlp_norm = nn.Parameter(torch.ones(shape.hidden))
        self.gate_up = nn.Parameter(torch.empty(2 * shape.mlp, shape.hidden))
        self.down = nn.Parameter(torch.empty(shape.hidden, shape.mlp))

    def project(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries, turned keys and values, each [..., heads, D], of hidden states [..., hidden]."""
        h = rms_norm(x, self.attention_norm)
        qkv = F.linear(h, self.qkv).float().unflatten(-1, (self.heads, 3, -1))
        pairs = torch.view_as_complex(qkv[..., :2, :].unflatten(-1, (-1, 2)))
        qk = torch.view_as_real(pairs * turn).flatten(-2)
        return qk[..., 0, :], qk[..., 1, :], qkv[..., 2, :]

    def feed_forward(self, x: Tensor) -> Tensor:
        """x plus the gated feed-forward layer of its norm."""
        h = rms_norm(x, self.mlp_norm)
        gate, up = F.linear(h, self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


class Llama(Policy):
    """Token ids to hidden states; fused matrices, see the top of the file."""

    def __init__(self, shape: LlamaModel, vocabulary: int, precision: Precision = FP32) -> None:
        super().__init__(precision)
        self.shape = shape
        self.embedding = nn.Parameter(torch.empty(vocabulary, shape.hidden))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self.head = nn.Parameter(torch.empty(vocabulary, shape.hidden))
        self.to(precision.weights)

    def init_weights(self, generator: torch.Generator) -> None:
        """Normal weights of sd 0.02, Llama's own start, wider where the layer is narrow (1 / sqrt(fan in))."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=max(0.02, parameter.shape[1] ** -0.5 / 2), generator=generator)

    @property
    def size(self) -> ModelSize:
        """What work on it costs."""
        numbers, shape = self.num_parameters(), self.shape
        return ModelSize(parameters=numbers, active_parameters=numbers, attention_width=shape.layers * shape.hidden)

    def rotary(self, positions: Tensor) -> Tensor:
        """Turns e^(i angle) of integer positions [...], complex [..., 1, 1, D / 2] to broadcast over heads, q and k."""
        size = self.shape.hidden // self.shape.heads
        frequency = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angle = positions[..., None, None, None].float() * frequency
        return torch.polar(torch.ones_like(angle), angle)

    def states(self, tokens_BT: Tensor) -> States:
        """Final hidden states [B, T, hidden] of right-padded rows."""
        turn = self.rotary(torch.arange(tokens_BT.shape[1]))

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (part.transpose(1, 2) for part in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)

        return States(hidden=self._body(tokens_BT, turn, attend))

    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden]: products run without padding, attention on each sequence by itself."""

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (packing.padded(part).transpose(1, 2) for part in (q, k, v))
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return packing.packed(attended.transpose(1, 2).flatten(2))

        return States(hidden=self._body(tokens_N, self.rotary(packing.position_N), attend))

    def _body(self, tokens: Tensor, turn: Tensor, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        def run(block: Block, x: Tensor) -> Tensor:
            x = x + F.linear(attend(*block.project(x, turn)), block.out)
            return block.feed_forward(x)

        recompute = self.recompute and torch.is_grad_enabled()
        with self.products():
            x = F.embedding(tokens, self.embedding).float()
            for block in self.layers():
                x = checkpoint(run, block, x, use_reentrant=False) if recompute else run(block, x)
            return self.final_norm(x)

    def final_norm(self, x: Tensor) -> Tensor:
        """The RMS norm before the head."""
        return rms_norm(x, self.norm)

    def layers(self) -> Iterator[Block]:
        """The decoder blocks, typed."""
        for block in self.blocks:
            assert isinstance(block, Block)
            yield block

    def head_weights(self) -> tuple[Tensor, None]:
        """The head has a matrix of its own and no bias."""
        return self.head, None

    def new_cache(self, *, slots: int, positions: int) -> LlamaCache:
        """An empty cache of that many rows and positions."""
        return LlamaCache(self, slots=slots, positions=positions)

    def save_weights(self, folder: Path) -> None:
        """Write model.safetensors."""
        save_file(to_hugging_face(self), folder / "model.safetensors", metadata={"format": "pt"})

    def load_weights(self, folder: Path) -> None:
        """Fill from the model.safetensors of `folder`."""
        from_hugging_face(self, load_file(folder / "model.safetensors"))

    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write config.json and model.safetensors that `LlamaForCausalLM.from_pretrained(folder)` loads."""
        folder.mkdir(parents=True, exist_ok=True)
        config(self.shape, self.head.shape[0], eos_token_id).save_pretrained(folder)
        self.save_weights(folder)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """x / sqrt(mean x^2 + EPS) weight, in float32 whatever precision the weights are kept in."""
    return F.rms_norm(x, (x.shape[-1],), weight.float(), EPS)


# --- Hugging Face format --------------------------------------------------------------------------------------------


def to_hugging_face(policy: Llama) -> dict[str, Tensor]:
    """The weights under LlamaForCausalLM's names, fused matrices split."""
    state: dict[str, Tensor] = {
        "model.embed_tokens.weight": policy.embedding,
        "model.norm.weight": policy.norm,
        "lm_head.weight": policy.head,
    }
    for index, block in enumerate(policy.layers()):
        prefix = f"model.layers.{index}."
        for name, part in zip("qkv", split_qkv(block.qkv, block.heads), strict=True):
            state[f"{prefix}self_attn.{name}_proj.weight"] = part
        for name, part in zip(("gate", "up"), block.gate_up.chunk(2), strict=True):
            state[f"{prefix}mlp.{name}_proj.weight"] = part
        state[prefix + "self_attn.o_proj.weight"] = block.out
        state[prefix + "mlp.down_proj.weight"] = block.down
        state[prefix + "input_layernorm.weight"] = block.attention_norm
        state[prefix + "post_attention_layernorm.weight"] = block.mlp_norm
    return {name: tensor.detach().contiguous().clone() for name, tensor in state.items()}


def fuse_qkv(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    """Llama's three projections as one matrix, a head's q, k and v together.

    Llama turns row i of a head of size D with row i + D / 2; here these two of q and of k lie side by side.
    """
    q, k = (part.view(heads, 2, -1, part.shape[1]).transpose(1, 2).reshape(heads, -1, part.shape[1]) for part in (q, k))
    return torch.stack((q, k, v.view_as(q)), dim=1).flatten(0, 2)


def split_qkv(qkv: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """The inverse of `fuse_qkv`."""
    q, k, v = qkv.view(heads, 3, -1, qkv.shape[1]).unbind(1)
    q, k = (part.unflatten(1, (-1, 2)).transpose(1, 2).flatten(0, 2) for part in (q, k))
    return q, k, v.flatten(0, 1)


def from_hugging_face(policy: Llama, state: dict[str, Tensor]) -> None:
    """Fill `policy` from LlamaForCausalLM's names; the inverse of `to_hugging_face`."""
    fused = {"embedding": state["model.embed_tokens.weight"], "norm": state["model.norm.weight"]}
    fused["head"] = state["lm_head.weight"]
    for index in range(policy.shape.layers):
        prefix, ours = f"model.layers.{index}.", f"blocks.{index}."
        q, k, v = (state[f"{prefix}self_attn.{name}_proj.weight"] for name in "qkv")
        fused[ours + "qkv"] = fuse_qkv(q, k, v, policy.shape.heads)
        fused[ours + "gate_up"] = torch.cat([state[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up")])
        fused[ours + "out"] = state[prefix + "self_attn.o_proj.weight"]
        fused[ours + "down"] = state[prefix + "mlp.down_proj.weight"]
        fused[ours + "attention_norm"] = state[prefix + "input_layernorm.weight"]
        fused[ours + "mlp_norm"] = state[prefix + "post_attention_layernorm.weight"]
    policy.load_state_dict(fused)


def config(shape: LlamaModel, vocabulary: int, eos_token_id: int) -> Any:
    """What `transformers` calls this model."""
    from transformers import LlamaConfig  # seconds to import, and only saving needs it

    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=MAX_POSITIONS,
        rms_norm_eps=EPS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=eos_token_id,
        pad_token_id=0,
    )
