"""Any causal language model that `transformers` loads, as a policy: Llama, Qwen, Mistral, Mixtral, Qwen-MoE, ...

The body is the library's. The head is ours, so that its precision is a setting and a tied embedding shares its matrix.
For a family that multiplies its logits by a factor, the hidden states are multiplied instead. Other changes to logits,
or a cache of more than keys and values, would make our results wrong. So loading weights compares our logits with the
model's own and rejects a model whose logits differ.

Every attention layer of the library calls `update` of the cache. Ours writes into one preallocated tensor and returns
what the layer may see, with a mask of the positions that each row has reached.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from scalerl.model.attention import BY_BLOCKS, BY_ROWS
from scalerl.model.kv_cache import KVCache, Prefill
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32, Policy, Precision, States, draw_normal
from scalerl.model.router import Routing
from scalerl.model.size import ModelSize
from scalerl.model.transformers_cache import CachedSizes, PromptWriter, Recorder, RowExtender, RowWriter
from scalerl.model.transformers_folder import read_model
from scalerl.model.transformers_masks import (
    Masks,
    added,
    attention_masks,
    head_size,
    kv_heads,
    logit_factor,
    packed_masks,
    refuse_positions,
)
from scalerl.model.transformers_weights import FileParts, exported, import_into
from scalerl.recipe.models import NUM_EXPERTS
from scalerl.weights.hugging_face import Weights

PROBE_LENGTH = 12
"""Tokens in the forward pass that checks loaded weights."""
PREFILL_TOKENS = 8192
"""Maximum number of prompt tokens per pass of the body."""
CHANGES_LOGITS = ("final_logit_softcapping", "output_multiplier_scale")
"""Changes that some families make to logits after the head; named when a model is rejected because of them."""
WORK = "Llama, Qwen 2 and 3, Mistral, Gemma 1 and 3, OLMo 2, Phi 3, Granite, GLM 4, Mixtral, Qwen-MoE, DeepSeek-V3"
"""Supported families, named in messages that reject another."""
OWN = "model."
"""Prefix of the library's names in the policy's `state_dict`."""
SWITCHED_OFF = ("attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "router_jitter_noise")
"""Pre-training noise to switch off: generator and trainer must give a token the same probability."""


class TransformersPolicy(Policy):
    """A `PreTrainedModel` with our head."""

    def __init__(self, model: PreTrainedModel, precision: Precision = FP32) -> None:
        super().__init__(precision)
        if not isinstance(model.get_output_embeddings(), nn.Linear) or model.base_model is model:
            raise ValueError(
                f"{model.config.model_type} has no body with a language-model head, so it cannot be trained here; "
                f"supported families are {WORK}"
            )
        self.model = model.eval()
        self.config = model.config
        # Recorded before sharding, which changes the shapes.
        self._forms = {name: (tensor.shape, tensor.dtype) for name, tensor in self.state_dict().items()}
        self._logit_factor = logit_factor(model.config)
        self._layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
        for layer in self._layers:
            vars(layer)["_gradient_checkpointing_func"] = partial(checkpoint, use_reentrant=False)

    @property
    def size(self) -> ModelSize:
        numbers = self.num_parameters()
        experts = sum(weight.numel() for name, weight in self.named_parameters() if ".experts." in name)
        idle = 0
        if experts:
            if not self.num_experts or not hasattr(self.config, "num_experts_per_tok"):
                raise ValueError(f"{self.config.model_type}: config.json does not give the number of experts per token")
            idle = experts - experts * self.config.num_experts_per_tok // self.num_experts
        per_head = self.config.num_hidden_layers * head_size(self.config)
        return ModelSize(
            parameters=numbers,
            active_parameters=numbers - idle,
            attention_width=self.config.num_attention_heads * per_head,
            cache_width=2 * kv_heads(self.config) * per_head,
        )

    @property
    def num_experts(self) -> int:
        """Number of experts per block, 0 in a dense model."""
        return next((number for name in NUM_EXPERTS if (number := getattr(self.config, name, None))), 0)

    def states(self, tokens_BT: Tensor) -> States:
        length, device = tokens_BT.shape[1], tokens_BT.device
        position_T = torch.arange(length, device=device)
        if self.attends_by_blocks:
            whole_row = Packing.of(torch.tensor([length], device="cpu")).to(device)
            return self.through(tokens_BT, position_T[None], packed_masks(self.config, whole_row))
        seen_TT = position_T <= position_T[:, None]
        return self.body(tokens_BT, position_T[None], seen_TT[None], position_T[:, None] - position_T)

    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        position_N = packing.position_N
        if self.attends_by_blocks or self.config._attn_implementation == BY_ROWS:
            states = self.through(tokens_N[None], position_N[None], packed_masks(self.config, packing))
        else:
            distance_NN = position_N[:, None] - position_N
            states = self.body(tokens_N[None], position_N[None], packing.may_attend()[None], distance_NN)
        return States(hidden=states.hidden[0], routing=states.routing)

    @property
    def attends_by_blocks(self) -> bool:
        """True if passes over whole rows use block-sparse attention instead of a full mask."""
        return self.config._attn_implementation == BY_BLOCKS

    def body(self, tokens: Tensor, positions: Tensor, seen: Tensor, distance: Tensor, cache: Any = None) -> States:
        """Run the library's body on [R, W] tokens; `seen` [R or 1, W, K] and `distance` determine the masks."""
        return self.through(tokens, positions, attention_masks(self.config, seen, distance), cache)

    def through(self, tokens: Tensor, positions: Tensor, masks: Masks, cache: Any = None) -> States:
        """Run the library's body on [R, W] tokens with the given attention masks."""
        if self.config._attn_implementation == "eager":
            masks = added(masks)
        recompute = self.recompute and cache is None and torch.is_grad_enabled()
        if recompute and not self._layers:
            raise ValueError(
                f"{self.config.model_type} does not support gradient checkpointing; remove "
                f"optimiser.gradient_checkpointing"
            )
        for layer in self._layers:
            # The library recomputes only layers in training mode; their submodules stay in eval mode, without dropout.
            layer.gradient_checkpointing = layer.training = recompute
        with self.products():
            # Float32: under autocast the residual stream keeps its initial precision.
            embedded = self.model.get_input_embeddings()(tokens).float()
            arguments = {"output_router_logits": True} if self.num_experts and cache is None else {}
            output = self.model.base_model(
                inputs_embeds=embedded,
                position_ids=positions,
                attention_mask=masks,
                past_key_values=cache,
                use_cache=cache is not None,
                **arguments,
            )
        routing = None
        if arguments:
            routing = Routing(logits=tuple(output.router_logits), experts_per_token=self.config.num_experts_per_tok)
        hidden = output.last_hidden_state.float()
        return States(hidden=hidden if self._logit_factor == 1 else hidden * self._logit_factor, routing=routing)

    @cached_property
    def cached_sizes(self) -> CachedSizes:
        """Heads and sizes of cached keys and values; raises ValueError unless they are the same in all layers."""
        recorder = Recorder()
        one = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        with torch.no_grad():
            self.body(one, one, one[None] == 0, one[None], recorder)
        found = set(recorder.sizes.values())
        if list(recorder.sizes) != list(range(self.config.num_hidden_layers)) or len(found) != 1:
            raise ValueError(
                f"{self.config.model_type}: unsupported KV cache (expected keys and values of one size in every layer)"
                f"; supported families are {WORK}"
            )
        return found.pop()

    def head_weights(self) -> tuple[Tensor, Tensor | None]:
        head = self.model.get_output_embeddings()
        assert isinstance(head, nn.Linear)
        return head.weight, head.bias

    def new_cache(self, *, slots: int, positions: int) -> "TransformersCache":
        return TransformersCache(self, slots=slots, positions=positions)

    def init_weights(self, generator: torch.Generator) -> None:
        """Normal weights as in the built-in decoder; norms 1, biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                draw_normal(parameter, max(0.02, parameter.shape[-1] ** -0.5 / 2), generator)
            else:
                nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)

    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        return exported(self.model, {name.removeprefix(OWN): tensor for name, tensor in own.items()})

    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        parts = FileParts(self.model, weights)

        def imported(name: str) -> Tensor:
            shape, dtype = self._forms[name]
            return parts.filled(name.removeprefix(OWN), torch.empty(shape, dtype=dtype, device="cpu"))

        return imported

    def import_weights(self, weights: Weights) -> None:
        import_into(self.model, weights)

    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write a folder for `AutoModelForCausalLM.from_pretrained(folder)`."""
        if self.config.eos_token_id is None:
            self.config.eos_token_id = eos_token_id
        self.save_weights(folder)

    def save_weights(self, folder: Path) -> None:
        """Write config.json, which records the precision, and the weights; tied ones once."""
        self.model.save_pretrained(folder)

    def stored_weights(self) -> dict[str, Tensor]:
        """Weights that the files of the model's folder hold, under the library's names."""
        return self.exported_weights()

    def take_stored(self, state: Mapping[str, Tensor]) -> None:
        """Fill from a `state_dict` of the library's model."""
        self.model.load_state_dict(state)

    def load_weights(self, folder: Path) -> None:
        """Fill from a folder, sharded or not; raises ValueError if our logits differ from the model's own."""
        theirs = read_model(folder, self.model, self.stored_weights())
        self.take_stored(theirs.state_dict())
        # Rounded weights cannot be compared, so the library's own weights are compared instead.
        compared = self if self.precision.weights == torch.float32 else TransformersPolicy(theirs)
        refuse_unless_same(compared, theirs, folder)


class TransformersCache(KVCache):
    """KV cache for decoding with a `TransformersPolicy`; it has as many heads as the model has key heads."""

    def __init__(self, policy: TransformersPolicy, *, slots: int, positions: int) -> None:
        config = policy.config
        refuse_positions(config, positions)
        heads, *sizes = self.sizes = policy.cached_sizes
        super().__init__(
            layers=config.num_hidden_layers,
            slots=slots,
            heads=heads,
            positions=positions,
            head_size=max(sizes),
            dtype=policy.precision.products,
            device=policy.device,
        )
        self.policy = policy

    def logits(self, tokens_n: Tensor, position_n: Tensor, *prefills: Prefill) -> Tensor:
        reach = int(position_n.max()) + 1
        position_n = position_n.to(tokens_n.device, non_blocking=True)
        self.reserve(len(tokens_n), reach)
        for part in (part for prefill in prefills for part in prefill.parts(PREFILL_TOKENS)):
            if part.position is not None:
                self._extend(part, part.position.clamp_min(0), reach)
                continue
            position_T = torch.arange(part.tokens.shape[1], device=part.tokens.device)
            distance_TT = position_T[:, None] - position_T
            prompts = PromptWriter(self.kv, part)
            self.policy.body(part.tokens, position_T[None], (distance_TT >= 0)[None], distance_TT, prompts)
        distance_n1T = position_n[:, None, None] - torch.arange(reach, device=position_n.device)
        rows = RowWriter(self.kv, position_n, reach)
        states = self.policy.body(tokens_n[:, None], position_n[:, None], distance_n1T >= 0, distance_n1T, rows)
        return self.policy.logits(states.hidden[:, 0])

    def _extend(self, part: Prefill, position: Tensor, reach: int) -> None:
        distance = position[:, :, None] - torch.arange(reach, device=position.device)
        self.policy.body(part.tokens, position, distance >= 0, distance, RowExtender(self.kv, part, reach))


@torch.no_grad()
def refuse_unless_same(policy: TransformersPolicy, theirs: PreTrainedModel, folder: Path) -> None:
    """Raises ValueError unless body, head and cache of `policy`, in FP32, reproduce the logits of the library's own
    model on a short input with eager attention."""
    vocabulary = policy.head_weights()[0].shape[0]
    tokens = torch.arange(PROBE_LENGTH, device=policy.device)[None] * 7919 % vocabulary
    precision, attention = policy.precision, theirs.config._attn_implementation
    policy.precision = FP32
    try:
        theirs.set_attn_implementation("eager")
        expected = theirs(tokens.to(theirs.device)).logits[0].float().to(policy.device)
        theirs.set_attn_implementation(attention or "sdpa")
        found = {
            "hidden states times the head": policy.logits(policy.hidden(tokens))[0],
            "decoding with cached keys": decoded_with_cache(policy, tokens),
        }
        assert policy.size.active_parameters > 0
    except Exception as error:  # a family may fail in any way when called from outside the library
        raise ValueError(
            f"model {folder} ({policy.config.model_type}) does not work with our masks and cache: "
            f"{str(error)[:300] or type(error).__name__}; supported families are {WORK}"
        ) from error
    finally:
        policy.precision = precision
    for what, ours in found.items():
        gap = float((ours - expected[-len(ours) :]).abs().max())
        if not gap <= 1e-4 * (1 + float(expected.abs().max())):
            extra = [name for name in CHANGES_LOGITS if getattr(policy.config, name, None)]
            raise ValueError(
                f"model {folder} ({policy.config.model_type}): {what} gives logits that differ from the model's own by "
                f"{gap:.3g}, so training would be wrong"
                + (f"; {', '.join(extra)} is not supported" if extra else "")
                + f"; supported families are {WORK}"
            )


def decoded_with_cache(policy: TransformersPolicy, tokens: Tensor) -> Tensor:
    """Logits [T / 2, V] of the second half of one row, token by token, with the first half cached as a prompt."""
    half, zero = tokens.shape[1] // 2, torch.zeros(1, dtype=torch.int64, device=tokens.device)
    cache = policy.new_cache(slots=1, positions=tokens.shape[1])
    prefill = Prefill(tokens=tokens[:, :half], rows=zero, prompts=zero)
    steps = [
        cache.logits(tokens[:, position], zero + position, *([prefill] if position == half else []))[0]
        for position in range(half, tokens.shape[1])
    ]
    return torch.stack(steps)
