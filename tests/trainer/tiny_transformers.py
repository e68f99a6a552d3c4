"""Models of several families, a few thousand parameters each, as `transformers` writes them to a folder."""

from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    DeepseekV3Config,
    Gemma2Config,
    Gemma3TextConfig,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

from scalerl.tokens.symbols import EOS_ID, VOCABULARY_SIZE

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY_SIZE,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": EOS_ID,
    "pad_token_id": None,
}
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
QWEN3_MOE: dict[str, Any] = {**SIZES, **EXPERTS, "head_dim": 8}
DEEPSEEK: dict[str, Any] = {
    **SIZES, "num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "moe_intermediate_size": 12, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 8,
    "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8,
}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**SIZES, attention_bias=True, head_dim=6),
    "qwen2": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2 windowed": Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True),
    "mistral": MistralConfig(**SIZES, sliding_window=None, attention_dropout=0.5),
    "mistral windowed": MistralConfig(**SIZES, sliding_window=5),
    "gemma3": Gemma3TextConfig(
        **SIZES, head_dim=4, sliding_window=5, layer_types=["sliding_attention", "full_attention"]
    ),
    "mixtral": MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, router_jitter_noise=0.3),
    "qwen2_moe": Qwen2MoeConfig(**SIZES, **EXPERTS, shared_expert_intermediate_size=12),
    "qwen3_moe": Qwen3MoeConfig(**QWEN3_MOE),
    # Keys and values of different sizes, and logits that are multiplied by a number.
    "deepseek_v3": DeepseekV3Config(**DEEPSEEK),
    "cohere": CohereConfig(**SIZES, logit_scale=0.5),
    # Attention that only the library's written-out form computes.
    "gpt_oss": GptOssConfig(
        **SIZES, num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=5,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "gemma2 capped": Gemma2Config(
        **SIZES, head_dim=4, sliding_window=5, attn_logit_softcapping=2.0, final_logit_softcapping=None
    ),
}  # fmt: skip


def make_folder(folder, config, seed=0):
    """Random weights, wide enough that distributions are far from flat; norms and biases random too."""
    # As the family wrote it out: the fused attention of some versions of the library leaves out Gemma 2's cap.
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_((not name.endswith("bias")) + torch.randn(parameter.shape, generator=generator) * 0.2)
            else:
                scale = 0.7 if "embed" in name or "lm_head" in name else parameter.shape[-1] ** -0.5
                parameter.normal_(std=scale, generator=generator)
    model.save_pretrained(folder)
    return model.eval()
