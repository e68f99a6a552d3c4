"""Any family of `transformers` is computed as the library does, or refused with a message: never a traceback."""

from typing import Any

import pytest
import torch
from trainer.tiny_transformers import CPU, DEEPSEEK, EXPERTS, SIZES, make_folder
from transformers import AutoConfig, AutoModelForCausalLM

from scalerl.model.transformers_load import empty

TOKENS = torch.arange(30)[None] * 7 % SIZES["vocab_size"]
MIXED = {"num_local_experts": 4, "num_experts_per_tok": 2}
WORK: dict[str, dict[str, Any]] = {
    "deepseek_v2": DEEPSEEK,
    "granite": {"logits_scaling": 3.0, "embedding_multiplier": 2.0},
    "granitemoe": MIXED,
    "phi3": {},
    "phimoe": MIXED,  # what other families call noise decides here where a token is sent
    "olmo2": {},
    "glm4": {"head_dim": 4},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 128},
    "opt": {"word_embed_proj_dim": 16, "ffn_dim": 24},
    "stablelm": {},
    "cohere2": {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    "glm4_moe": {**EXPERTS, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "head_dim": 8},
}
REFUSED = {
    "mamba": "attention is supported",
    "rwkv": "unsupported KV cache",
    "bloom": "does not work with our masks and cache",
    "nanochat": "final_logit_softcapping is not supported",
    "llama4_text": "has no body with a language-model head",
    "bert": "differ from the model's own",
    "olmo_hybrid": "attention is supported",
    "t5": "transformers has no causal language model",
}


def made(family, settings, folder):
    config = type(AutoConfig.for_model(family))(**{**SIZES, **settings})
    return config, make_folder(folder, config)


@pytest.mark.parametrize("family", WORK)
def test_a_family_has_the_logits_of_its_own_written_out_attention(family, tmp_path):
    config, _ = made(family, WORK[family], tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager").eval()
    policy = empty(config, CPU)
    policy.load_weights(tmp_path)
    with torch.no_grad():
        expected = theirs(TOKENS).logits
        torch.testing.assert_close(policy.logits(policy.hidden(TOKENS)), expected, rtol=1e-5, atol=2e-5)
    # A second policy that was filled from the first, as a generator's is, computes the same.
    other = empty(config, CPU)
    other.import_weights(policy.exported_weights())
    with torch.no_grad():
        torch.testing.assert_close(other.hidden(TOKENS), policy.hidden(TOKENS), rtol=0, atol=0)


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_cannot_be_trained_is_refused_with_the_reason_and_others_that_can(family, tmp_path):
    if family == "t5":
        config = AutoConfig.for_model("t5")
    else:
        config, _ = made(family, {}, tmp_path)
    with pytest.raises(ValueError, match=f"{REFUSED[family]}(?s:.)*Llama, Qwen 2 and 3"):
        empty(config, CPU).load_weights(tmp_path)
