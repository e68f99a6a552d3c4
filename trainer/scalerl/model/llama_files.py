"""The built-in policy in Hugging Face's format: configuration, and weights under LlamaForCausalLM's names.

Our own names are `embedding`, `norm`, `head` and, in every block, `qkv`, `gate_up`, `out`, `down` and two norms:
matrices that meet the same input are one (`scalerl.model.llama`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from scalerl.recipe import LlamaModel

EPS = 1e-6
"""In an RMS norm."""
ROPE_BASE = 10000.0
MAX_POSITIONS = 4096
"""Rotary positions have no end of their own; servers reserve memory for as many as the configuration says."""


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


def to_hugging_face(state: Mapping[str, Tensor], shape: LlamaModel) -> dict[str, Tensor]:
    """Weights under our names as those under LlamaForCausalLM's, fused matrices split; most are views."""
    theirs = {
        "model.embed_tokens.weight": state["embedding"],
        "model.norm.weight": state["norm"],
        "lm_head.weight": state["head"],
    }
    for index in range(shape.layers):
        prefix, ours = f"model.layers.{index}.", f"blocks.{index}."
        for name, part in zip("qkv", split_qkv(state[ours + "qkv"], shape.heads), strict=True):
            theirs[f"{prefix}self_attn.{name}_proj.weight"] = part
        for name, part in zip(("gate", "up"), state[ours + "gate_up"].chunk(2), strict=True):
            theirs[f"{prefix}mlp.{name}_proj.weight"] = part
        theirs[prefix + "self_attn.o_proj.weight"] = state[ours + "out"]
        theirs[prefix + "mlp.down_proj.weight"] = state[ours + "down"]
        theirs[prefix + "input_layernorm.weight"] = state[ours + "attention_norm"]
        theirs[prefix + "post_attention_layernorm.weight"] = state[ours + "mlp_norm"]
    return theirs


def from_hugging_face(theirs: Mapping[str, Tensor], shape: LlamaModel) -> Iterator[tuple[str, Tensor]]:
    """The inverse of `to_hugging_face`, one tensor at a time: fused ones are copies."""
    yield "embedding", theirs["model.embed_tokens.weight"]
    yield "norm", theirs["model.norm.weight"]
    yield "head", theirs["lm_head.weight"]
    for index in range(shape.layers):
        prefix, ours = f"model.layers.{index}.", f"blocks.{index}."
        q, k, v = (theirs[f"{prefix}self_attn.{name}_proj.weight"] for name in "qkv")
        yield ours + "qkv", fuse_qkv(q, k, v, shape.heads)
        yield ours + "gate_up", torch.cat([theirs[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up")])
        yield ours + "out", theirs[prefix + "self_attn.o_proj.weight"]
        yield ours + "down", theirs[prefix + "mlp.down_proj.weight"]
        yield ours + "attention_norm", theirs[prefix + "input_layernorm.weight"]
        yield ours + "mlp_norm", theirs[prefix + "post_attention_layernorm.weight"]
