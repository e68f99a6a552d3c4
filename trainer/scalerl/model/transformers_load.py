"""Policies of the library's models, their weights not set: of a configuration, of a folder, of sizes."""

import copy

import torch
from transformers import AutoConfig, AutoModelForCausalLM, MixtralConfig, PreTrainedConfig
from transformers.initialization import no_init_weights

from scalerl.model.llama_files import EPS, MAX_POSITIONS, ROPE_BASE
from scalerl.model.policy import FP32, Precision
from scalerl.model.transformers_policy import SWITCHED_OFF, TransformersPolicy
from scalerl.recipe import MoeModel, PretrainedModel
from scalerl.tokens import make_tokenizer


def empty(config: PreTrainedConfig, device: torch.device, precision: Precision = FP32) -> TransformersPolicy:
    """A policy of this configuration on `device`, its weights not set."""
    config = copy.deepcopy(config)
    for name in SWITCHED_OFF:
        if getattr(config, name, None):
            setattr(config, name, 0.0)
    # Eager experts: the grouped product has no half precision on a CPU.
    with no_init_weights(), device:
        model = AutoModelForCausalLM.from_config(
            config, dtype=precision.weights, attn_implementation="sdpa", experts_implementation="eager"
        )
    model.tie_weights()  # part of the initialisation that was left out
    return TransformersPolicy(model, precision)


def of_folder(model: PretrainedModel, device: torch.device, precision: Precision) -> TransformersPolicy:
    """A policy of the model in a folder, its weights not set."""
    return empty(AutoConfig.from_pretrained(model.path), device, precision)


def mixtral(shape: MoeModel, device: torch.device, precision: Precision) -> TransformersPolicy:
    """A mixture of experts of these sizes, its weights not set."""
    config = MixtralConfig(
        architectures=["MixtralForCausalLM"],
        vocab_size=make_tokenizer(shape).size,
        hidden_size=shape.hidden,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.hidden // shape.heads,
        num_local_experts=shape.experts,
        num_experts_per_tok=shape.experts_per_token,
        max_position_embeddings=MAX_POSITIONS,
        rms_norm_eps=EPS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return empty(config, device, precision)
