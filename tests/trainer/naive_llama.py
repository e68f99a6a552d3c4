"""A Llama decoder for one sequence, one token at a time, in float64 NumPy loops: the generator's reference.

Weights are those that a policy exports, under Llama's own names; the arithmetic is written from the Llama
papers. The cache is a plain list, so that tokens cached under old weights stay as they were.
"""

import math

import numpy as np

Weights = dict[str, np.ndarray]
Cache = list[list[tuple[np.ndarray, np.ndarray]]]
"""For each layer, the keys and values [heads, D] of every position so far."""


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x) + 1e-6) * weight


def rotated(x: np.ndarray, position: int) -> np.ndarray:
    """Pairs (i, i + D/2) turned by position / 10000^(2i / D)."""
    half = x.shape[1] // 2
    result = np.empty_like(x)
    for i in range(half):
        angle = position / 10000 ** (2 * i / x.shape[1])
        a, b = x[:, i], x[:, i + half]
        result[:, i] = a * math.cos(angle) - b * math.sin(angle)
        result[:, i + half] = b * math.cos(angle) + a * math.sin(angle)
    return result


def next_logits(weights: Weights, heads: int, cache: Cache, token: int) -> np.ndarray:
    """Logits after `token`, whose keys and values are added to `cache`."""
    x = weights["model.embed_tokens.weight"][token]
    position = len(cache[0])
    for layer, positions in enumerate(cache):
        w = {name.removeprefix(f"model.layers.{layer}."): tensor for name, tensor in weights.items()}
        h = rms_norm(x, w["input_layernorm.weight"])
        query, key, value = ((w[f"self_attn.{name}_proj.weight"] @ h).reshape(heads, -1) for name in "qkv")
        positions.append((rotated(key, position), value))
        query = rotated(query, position)
        attended = []
        for head in range(heads):
            scores = np.array([query[head] @ k[head] for k, _ in positions]) / math.sqrt(query.shape[1])
            share = np.exp(scores - scores.max())
            share /= share.sum()
            attended.append(sum(s * v[head] for s, (_, v) in zip(share, positions, strict=True)))
        x = x + w["self_attn.o_proj.weight"] @ np.concatenate(attended)
        h = rms_norm(x, w["post_attention_layernorm.weight"])
        gate, up = w["mlp.gate_proj.weight"] @ h, w["mlp.up_proj.weight"] @ h
        x = x + w["mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)
    return weights["lm_head.weight"] @ rms_norm(x, weights["model.norm.weight"])


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return shifted - math.log(np.exp(shifted).sum())
