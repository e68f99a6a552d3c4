"""Files of the built-in policy in Hugging Face's format: configuration and weights under LlamaForCausalLM's names.

Our own names are `embedding`, `norm` and `head`, and in every block `qkv`, `gate_up`, `out`, `down` and two norms.
Matrices with the same input are fused (`scalerl.model.llama`).
"""

import json
from collections.abc import Mapping

import torch
from torch import Tensor

from scalerl.recipe import LlamaModel

RMS_EPS = 1e-6
"""Epsilon of the RMS norms."""
ROPE_BASE = 10000.0
MAX_POSITIONS = 4096
"""Positions in the configuration: rotary positions have no limit, but servers reserve memory for this many."""


def fuse_qkv(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    """Llama's three projections as one matrix, with q, k and v of each head together.

    Llama rotates row i of a head of size D with row i + D / 2; here these two rows of q and of k are adjacent.
    """
    q, k = (part.view(heads, 2, -1, part.shape[1]).transpose(1, 2).reshape(heads, -1, part.shape[1]) for part in (q, k))
    return torch.stack((q, k, v.view_as(q)), dim=1).flatten(0, 2)


def split_qkv(qkv: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inverse of `fuse_qkv`."""
    q, k, v = qkv.view(heads, 3, -1, qkv.shape[1]).unbind(1)
    q, k = (part.unflatten(1, (-1, 2)).transpose(1, 2).flatten(0, 2) for part in (q, k))
    return q, k, v.flatten(0, 1)


def config_json(shape: LlamaModel, vocabulary: int, eos_token_id: int) -> str:
    """The config.json of this model, as `LlamaConfig` writes it; importing `transformers` for it would take seconds."""
    settings = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": eos_token_id,
        "head_dim": shape.hidden // shape.heads,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.mlp,
        "max_position_embeddings": MAX_POSITIONS,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.heads,
        "pad_token_id": 0,
        "pretraining_tp": 1,
        "rms_norm_eps": RMS_EPS,
        "rope_parameters": {"rope_theta": ROPE_BASE, "rope_type": "default"},
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": vocabulary,
    }
    return json.dumps(settings, indent=2) + "\n"


OUTSIDE_LAYERS = {"embedding": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight"}
"""Tensors outside the layers: our name to Llama's."""
LAYER_TENSORS = {
    "out": "self_attn.o_proj.weight",
    "down": "mlp.down_proj.weight",
    "attention_norm": "input_layernorm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
}
"""Tensors of a layer that are the same on both sides: our name to Llama's."""
FUSED = {
    "qkv": tuple(f"self_attn.{name}_proj.weight" for name in "qkv"),
    "gate_up": tuple(f"mlp.{name}_proj.weight" for name in ("gate", "up")),
}


def to_hugging_face(state: Mapping[str, Tensor], shape: LlamaModel) -> dict[str, Tensor]:
    """Weights under LlamaForCausalLM's names, fused matrices split; most are views, and absent weights are skipped."""
    theirs = {name: state[own] for own, name in OUTSIDE_LAYERS.items() if own in state}
    for index in range(shape.layers):
        prefix, ours = f"model.layers.{index}.", f"blocks.{index}."
        for own, names in FUSED.items():
            if ours + own in state:
                tensor = state[ours + own]
                parts = split_qkv(tensor, shape.heads) if own == "qkv" else tensor.chunk(2)
                theirs |= {prefix + name: part for name, part in zip(names, parts, strict=True)}
        theirs |= {prefix + name: state[ours + own] for own, name in LAYER_TENSORS.items() if ours + own in state}
    return theirs


def own_tensor(name: str, theirs: Mapping[str, Tensor], shape: LlamaModel) -> Tensor:
    """One weight under our name, from weights under LlamaForCausalLM's names; fused weights are copies."""
    if name in OUTSIDE_LAYERS:
        return theirs[OUTSIDE_LAYERS[name]]
    _, index, own = name.split(".")
    prefix = f"model.layers.{index}."
    if own in LAYER_TENSORS:
        return theirs[prefix + LAYER_TENSORS[own]]
    parts = [theirs[prefix + part] for part in FUSED[own]]
    return fuse_qkv(parts[0], parts[1], parts[2], shape.heads) if own == "qkv" else torch.cat(parts)
