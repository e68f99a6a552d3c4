"""Policies of `transformers` models, weights not yet set: from a configuration, a folder or given sizes."""

import copy
from contextlib import nullcontext

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    MixtralConfig,
    PreTrainedConfig,
)
from transformers.initialization import no_init_weights

from scalerl.model.attention import BY_BLOCKS, BY_ROWS
from scalerl.model.llama_files import MAX_POSITIONS, RMS_EPS, ROPE_BASE
from scalerl.model.outline import shapes_alone
from scalerl.model.policy import FP32, Precision
from scalerl.model.transformers_policy import SWITCHED_OFF, WORK, TransformersPolicy
from scalerl.recipe import MoeModel, PretrainedModel
from scalerl.tokens import make_tokenizer

NO_NOISE = {("phimoe", "router_jitter_noise")}
"""Settings with names of noise that also change what a model computes without noise."""


def empty(
    config: PreTrainedConfig, device: torch.device, precision: Precision = FP32, *, outline: bool = False
) -> TransformersPolicy:
    """A policy of this configuration on `device`, with weights not yet set; an outline has no memory for them.

    ValueError if `transformers` has no causal language model for it.
    """
    config = copy.deepcopy(config)
    for name in SWITCHED_OFF:
        if getattr(config, name, None) and (config.model_type, name) not in NO_NOISE:
            setattr(config, name, 0.0)
    # Eager experts: the grouped product does not support half precision on a CPU.
    try:
        with no_init_weights(), device, shapes_alone() if outline else nullcontext():
            model = AutoModelForCausalLM.from_config(
                config,
                dtype=precision.weights,
                attn_implementation=attention_of(config, device),
                experts_implementation="eager",
            )
    except (ValueError, TypeError, AttributeError, KeyError, ImportError) as error:
        raise ValueError(
            f"{config.model_type}: transformers has no causal language model for this configuration ({error}); "
            f"supported families are {WORK}"
        ) from error
    # Remaining initialisation: shared tensors, and constants such as rotary frequencies, which no file holds.
    model.tie_weights()
    with device:
        for module in model.modules():
            if module._buffers and not module._parameters:
                model._init_weights(module)
    return TransformersPolicy(model, precision)


def attention_of(config: PreTrainedConfig, device: torch.device) -> str:
    """Attention by blocks on a GPU or by rows on a CPU; eager if the family supports no fused attention."""
    family = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    is_capped = getattr(config, "attn_logit_softcapping", None)
    if is_capped or not getattr(family, "_supports_sdpa", True):
        return "eager"
    return BY_BLOCKS if device.type == "cuda" else BY_ROWS


def of_folder(
    model: PretrainedModel, device: torch.device, precision: Precision, *, outline: bool = False
) -> TransformersPolicy:
    """A policy of the model in a folder, with weights not yet set. ValueError if its config.json cannot be read."""
    try:
        config = AutoConfig.from_pretrained(model.path)
    except Exception as error:  # the library raises many types for a damaged or unknown configuration
        raise ValueError(f"model {model.path}: cannot read config.json: {error}") from error
    return empty(config, device, precision, outline=outline)


def mixtral(
    shape: MoeModel, device: torch.device, precision: Precision, *, outline: bool = False
) -> TransformersPolicy:
    """A mixture of experts of these sizes, with weights not yet set."""
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
        rms_norm_eps=RMS_EPS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return empty(config, device, precision, outline=outline)
