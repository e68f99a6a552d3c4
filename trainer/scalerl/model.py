"""The policy: a Llama decoder whose weights are Hugging Face's, written for small batches on a CPU.

`transformers` describes and stores it (`LlamaConfig`, `model.safetensors` under Llama's own names); the arithmetic is
here, because a decode step of a tiny model is all overhead: query, key and value are one product, so are gate and up,
and the two numbers that a rotary position turns lie side by side, so that turning them is one complex product.
A test compares the logits with `LlamaForCausalLM`.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from scalerl.recipe import Model, ResolvedRecipe
from scalerl.tokens import make_tokenizer

EPS = 1e-6
ROPE_BASE = 10000.0
MAX_POSITIONS = 4096
"""Rotary positions have no end of their own; servers reserve memory for as many as the configuration says."""


class Block(nn.Module):
    """One decoder block: attention over rotary positions, then a gated feed-forward layer, each behind an RMS norm."""

    def __init__(self, shape: Model) -> None:
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
        h = F.rms_norm(x, (x.shape[-1],), self.attention_norm, EPS)
        qkv = F.linear(h, self.qkv).unflatten(-1, (self.heads, 3, -1))
        # There are no complex BF16 numbers; float32 weights pass through both casts as they are.
        pairs = torch.view_as_complex(qkv[..., :2, :].float().unflatten(-1, (-1, 2)))
        qk = torch.view_as_real(pairs * turn).flatten(-2).to(qkv.dtype)
        return qk[..., 0, :], qk[..., 1, :], qkv[..., 2, :]

    def feed_forward(self, x: Tensor) -> Tensor:
        """x plus the gated feed-forward layer of its norm."""
        h = F.rms_norm(x, (x.shape[-1],), self.mlp_norm, EPS)
        gate, up = F.linear(h, self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


class Policy(nn.Module):
    """Token ids to logits; `head_dtype` is the precision of the language-model head (ScaleRL §3.2)."""

    def __init__(self, shape: Model, vocabulary: int, head_dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.shape = shape
        self.head_dtype = head_dtype
        self.embedding = nn.Parameter(torch.empty(vocabulary, shape.hidden))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self.head = nn.Parameter(torch.empty(vocabulary, shape.hidden))

    def init_weights(self, generator: torch.Generator) -> None:
        """Normal weights of sd 0.02, Llama's own start, wider where the layer is narrow (1 / sqrt(fan in))."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=max(0.02, parameter.shape[1] ** -0.5 / 2), generator=generator)

    def num_parameters(self) -> int:
        """Trainable numbers, embedding and head included."""
        return sum(parameter.numel() for parameter in self.parameters())

    def rotary(self, positions: Tensor) -> Tensor:
        """Turns e^(i angle) of integer positions [...], complex [..., 1, 1, D / 2] to broadcast over heads, q and k."""
        size = self.shape.hidden // self.shape.heads
        frequency = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angle = positions[..., None, None, None].float() * frequency
        return torch.polar(torch.ones_like(angle), angle)

    def hidden(self, tokens_BT: Tensor) -> Tensor:
        """Final hidden states [B, T, hidden] of right-padded rows."""
        turn = self.rotary(torch.arange(tokens_BT.shape[1]))
        x = F.embedding(tokens_BT, self.embedding)
        for block in self.layers():
            q, k, v = (part.transpose(1, 2) for part in block.project(x, turn))
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(attended.transpose(1, 2).flatten(2), block.out)
            x = block.feed_forward(x)
        return self.final_norm(x)

    def final_norm(self, x: Tensor) -> Tensor:
        """The RMS norm before the head."""
        return F.rms_norm(x, (x.shape[-1],), self.norm, EPS)

    def layers(self) -> Iterator[Block]:
        """The decoder blocks, typed."""
        for block in self.blocks:
            assert isinstance(block, Block)
            yield block

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [..., V]; in BF16 both the product and its result are rounded, as an unguarded head would."""
        return F.linear(hidden.to(self.head_dtype), self.head.to(self.head_dtype)).float()

    def token_logprobs(self, tokens_BT: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Log-probability of each token given those before it, and the entropy there, both [B, T], 0 at position 0."""
        logits = self.logits(self.hidden(tokens_BT)[:, :-1]) / temperature
        logprobs_BTV = logits.log_softmax(-1)
        chosen = logprobs_BTV.gather(-1, tokens_BT[:, 1:].unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            entropy = -(logprobs_BTV.exp() * logprobs_BTV).sum(-1)
        return F.pad(chosen, (1, 0)), F.pad(entropy, (1, 0))


def new_policy(recipe: ResolvedRecipe) -> Policy:
    """A policy of the recipe's size and head precision, its weights not yet set."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[recipe.logits]
    return Policy(recipe.model, make_tokenizer(recipe.model).size, dtype)


# --- Hugging Face format --------------------------------------------------------------------------------------------


def to_hugging_face(policy: Policy) -> dict[str, Tensor]:
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


def from_hugging_face(policy: Policy, state: dict[str, Tensor]) -> None:
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


def save_pretrained(policy: Policy, folder: Path, *, eos_token_id: int) -> None:
    """Write config.json and model.safetensors that `LlamaForCausalLM.from_pretrained(folder)` loads."""
    from transformers import LlamaConfig  # seconds to import, and only saving needs it

    shape = policy.shape
    config = LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=policy.head.shape[0],
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
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    save_weights(policy, folder)


def save_weights(policy: Policy, folder: Path) -> None:
    """Write model.safetensors."""
    save_file(to_hugging_face(policy), folder / "model.safetensors", metadata={"format": "pt"})


def load_pretrained(policy: Policy, folder: Path) -> None:
    """Fill `policy` from the model.safetensors of `folder`."""
    from_hugging_face(policy, load_file(folder / "model.safetensors"))
