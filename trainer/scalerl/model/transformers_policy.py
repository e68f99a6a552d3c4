"""Any causal language model that `transformers` loads, as a policy: Llama, Qwen, Mistral, Mixtral, Qwen-MoE, ...

The body is the library's. The head is ours, so that its precision is a setting and a tied embedding is its matrix on
both sides. A family that multiplies its logits by a number has its hidden states multiplied instead. If a family
changes its logits in another way, or caches more than keys and values, our result would be wrong: when weights are
loaded, our logits are compared with the model's own, and a model whose logits differ is refused.

The library calls `update` of the cache it is given in every attention layer; ours writes into one preallocated tensor
and hands back what the layer may see, and a mask of our own says which of it each row has reached.
"""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import Cache, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from scalerl.model.attention import ATTENTION_NAME as BY_BLOCKS
from scalerl.model.kv_cache import KVCache, Prefill
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32, Policy, Precision, States, draw_normal
from scalerl.model.router import Routing
from scalerl.model.size import ModelSize
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

Pair = tuple[Tensor, Tensor]
PROBE_LENGTH = 12
"""Tokens of the forward pass that loaded weights are compared on."""
PREFILL_TOKENS = 8192
"""Prompt tokens that go through the body at once."""
CHANGES_LOGITS = ("final_logit_softcapping", "output_multiplier_scale")
"""What some families do to logits after the head; named where it is why a model is refused."""
WORK = "Llama, Qwen 2 and 3, Mistral, Gemma 1 and 3, OLMo 2, Phi 3, Granite, GLM 4, Mixtral, Qwen-MoE, DeepSeek-V3"
"""Families that messages name instead of one that is refused."""
OWN = "model."
"""What stands before the library's names in those of the policy's own."""
SWITCHED_OFF = ("attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "router_jitter_noise")
"""Noise of pre-training: generator and trainer must give a token the same probability."""


class TransformersPolicy(Policy):
    """A `PreTrainedModel` under our head."""

    def __init__(self, model: PreTrainedModel, precision: Precision = FP32) -> None:
        super().__init__(precision)
        if not isinstance(model.get_output_embeddings(), nn.Linear) or model.base_model is model:
            raise ValueError(
                f"{model.config.model_type} has no language-model head over a body, so it cannot be trained here; "
                f"families that can are {WORK}"
            )
        self.model = model.eval()
        self.config = model.config
        # Kept here: sharded weights no longer have the shapes of their own.
        self._forms = {name: (tensor.shape, tensor.dtype) for name, tensor in self.state_dict().items()}
        self._logit_factor = logit_factor(model.config)
        self._layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
        for layer in self._layers:
            vars(layer)["_gradient_checkpointing_func"] = partial(checkpoint, use_reentrant=False)

    @property
    def size(self) -> ModelSize:
        """What work on it costs; only the experts that a token is sent to are active."""
        numbers = self.num_parameters()
        experts = sum(weight.numel() for name, weight in self.named_parameters() if ".experts." in name)
        idle = 0
        if experts:
            if not self.num_experts or not hasattr(self.config, "num_experts_per_tok"):
                raise ValueError(
                    f"{self.config.model_type}: config.json does not say how many experts a token is sent to"
                )
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
        """Experts of a block, 0 in a dense model."""
        return next((number for name in NUM_EXPERTS if (number := getattr(self.config, name, None))), 0)

    def states(self, tokens_BT: Tensor) -> States:
        """Final hidden states [B, T, hidden] of right-padded rows."""
        length, device = tokens_BT.shape[1], tokens_BT.device
        position_T = torch.arange(length, device=device)
        if self.attends_by_blocks:
            whole_row = Packing.of(torch.tensor([length], device="cpu")).to(device)
            return self.through(tokens_BT, position_T[None], packed_masks(self.config, whole_row))
        seen_TT = position_T <= position_T[:, None]
        return self.body(tokens_BT, position_T[None], seen_TT[None], position_T[:, None] - position_T)

    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden] of the same tokens without padding."""
        position_N = packing.position_N
        if self.attends_by_blocks:
            states = self.through(tokens_N[None], position_N[None], packed_masks(self.config, packing))
        else:
            distance_NN = position_N[:, None] - position_N
            states = self.body(tokens_N[None], position_N[None], packing.may_attend()[None], distance_NN)
        return States(hidden=states.hidden[0], routing=states.routing)

    @property
    def attends_by_blocks(self) -> bool:
        """Whether passes over whole rows need no mask of every token by every token."""
        return self.config._attn_implementation == BY_BLOCKS

    def body(self, tokens: Tensor, positions: Tensor, seen: Tensor, distance: Tensor, cache: Any = None) -> States:
        """The library's body on [R, W] tokens; `seen` [R or 1, W, K] and `distance` say what a token may attend to."""
        return self.through(tokens, positions, attention_masks(self.config, seen, distance), cache)

    def through(self, tokens: Tensor, positions: Tensor, masks: Masks, cache: Any = None) -> States:
        """The library's body on [R, W] tokens, which attend to what the masks say."""
        if self.config._attn_implementation == "eager":
            masks = added(masks)
        recompute = self.recompute and cache is None and torch.is_grad_enabled()
        if recompute and not self._layers:
            raise ValueError(
                f"{self.config.model_type} does not support gradient checkpointing; leave "
                f"optimiser.gradient_checkpointing out"
            )
        for layer in self._layers:
            # The library recomputes only layers in training mode; what is inside them stays free of dropout.
            layer.gradient_checkpointing = layer.training = recompute
        with self.products():
            # Float32: under autocast the residual stream keeps the precision it starts with.
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
    def cached_sizes(self) -> "CachedSizes":
        """What its layers cache of a token; ValueError where that is not keys and values of one size."""
        recorder = Recorder()
        one = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        with torch.no_grad():
            self.body(one, one, one[None] == 0, one[None], recorder)
        found = set(recorder.sizes.values())
        if list(recorder.sizes) != list(range(self.config.num_hidden_layers)) or len(found) != 1:
            raise ValueError(
                f"{self.config.model_type}: its layers cache something else than keys and values of one size each, "
                f"which cannot be decoded here; families that can are {WORK}"
            )
        return found.pop()

    def head_weights(self) -> tuple[Tensor, Tensor | None]:
        """Matrix [V, hidden], tied to the embedding or not, and bias of the head."""
        head = self.model.get_output_embeddings()
        assert isinstance(head, nn.Linear)
        return head.weight, head.bias

    def new_cache(self, *, slots: int, positions: int) -> "TransformersCache":
        """An empty cache to decode `slots` rows of up to `positions` tokens with."""
        return TransformersCache(self, slots=slots, positions=positions)

    def init_weights(self, generator: torch.Generator) -> None:
        """Normal weights as the built-in decoder's; norms 1, biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                draw_normal(parameter, max(0.02, parameter.shape[-1] ** -0.5 / 2), generator)
            else:
                nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)

    def exported_weights(self) -> dict[str, Tensor]:
        """Under the library's names."""
        return exported(self.model)

    def exported_part(self, own: Weights) -> dict[str, Tensor]:
        """Under the library's names."""
        return exported(self.model, {name.removeprefix(OWN): tensor for name, tensor in own.items()})

    def importer(self, weights: Weights) -> Callable[[str], Tensor]:
        """Fills a tensor with the pieces that the file has of it."""
        parts = FileParts(self.model, weights)

        def imported(name: str) -> Tensor:
            shape, dtype = self._forms[name]
            return parts.filled(name.removeprefix(OWN), torch.empty(shape, dtype=dtype, device="cpu"))

        return imported

    def import_weights(self, weights: Weights) -> None:
        """Fill from weights under the library's names."""
        import_into(self.model, weights)

    def save(self, folder: Path, *, eos_token_id: int) -> None:
        """Write what `AutoModelForCausalLM.from_pretrained(folder)` loads."""
        if self.config.eos_token_id is None:
            self.config.eos_token_id = eos_token_id
        self.save_weights(folder)

    def save_weights(self, folder: Path) -> None:
        """Write config.json, which says the weights' precision, and the weights; tied ones once."""
        self.model.save_pretrained(folder)

    def load_weights(self, folder: Path) -> None:
        """Fill from a folder, sharded or not; ValueError if the model computes something that we do not."""
        theirs = read_model(folder, self.model, self.exported_weights())
        self.model.load_state_dict(theirs.state_dict())
        # Rounded weights cannot be compared; then the library's own model stands in for ours.
        compared = self if self.precision.weights == torch.float32 else TransformersPolicy(theirs)
        refuse_unless_same(compared, theirs, folder)


class TransformersCache(KVCache):
    """Decodes a `TransformersPolicy`; keys have as many heads as the model's keys."""

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

    def logits(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows."""
        reach = int(position_n.max()) + 1
        position_n = position_n.to(tokens_n.device, non_blocking=True)
        self.reserve(len(tokens_n), reach)
        if prefill is not None:
            position_T = torch.arange(prefill.tokens.shape[1], device=prefill.tokens.device)
            distance_TT = position_T[:, None] - position_T
            for part in prefill.parts(PREFILL_TOKENS):
                prompts = PromptWriter(self.kv, part)
                self.policy.body(part.tokens, position_T[None], (distance_TT >= 0)[None], distance_TT, prompts)
        distance_n1T = position_n[:, None, None] - torch.arange(reach, device=position_n.device)
        rows = RowWriter(self.kv, position_n, reach)
        states = self.policy.body(tokens_n[:, None], position_n[:, None], distance_n1T >= 0, distance_n1T, rows)
        return self.policy.logits(states.hidden[:, 0])


CachedSizes = tuple[int, int, int]
"""Heads of keys and values, numbers of a key, numbers of a value."""


class Recorder(Cache):
    """Remembers the sizes of what layers cache, and caches nothing."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.sizes: dict[int, CachedSizes] = {}

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Hand back what it is given."""
        self.sizes[layer_idx] = (key_states.shape[1], key_states.shape[-1], value_states.shape[-1])
        return key_states, value_states


class RowWriter(Cache):
    """Takes one token of each row, each at its own position."""

    def __init__(self, kv: list[Tensor], position_n: Tensor, reach: int) -> None:
        super().__init__(layers=[])
        self.kv, self.position_n, self.reach = kv, position_n, reach
        self.row_n = torch.arange(len(position_n), device=position_n.device)

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [n, heads, 1, D]; what each row may attend to, [n, heads, reach, D]."""
        layer = self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[self.row_n, :, which, self.position_n, : new.shape[-1]] = new[:, :, 0].to(layer.dtype)
        seen = layer[: len(self.row_n), :, :, : self.reach]
        return seen[:, :, 0, :, : key_states.shape[-1]], seen[:, :, 1, :, : value_states.shape[-1]]


class PromptWriter(Cache):
    """Takes whole prompts and copies each to its rows."""

    def __init__(self, kv: list[Tensor], prefill: Prefill) -> None:
        super().__init__(layers=[])
        self.kv, self.prefill = kv, prefill

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [P, heads, W, D]; a prompt attends to itself."""
        rows, prompts, layer = self.prefill.rows, self.prefill.prompts, self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[rows, :, which, : new.shape[2], : new.shape[-1]] = new[prompts].to(layer.dtype)
        return key_states, value_states


@torch.no_grad()
def refuse_unless_same(policy: TransformersPolicy, theirs: PreTrainedModel, folder: Path) -> None:
    """Raises ValueError unless body, head and cache of `policy`, in FP32, give the logits of the library's own model on
    a short input, by the attention that its family wrote out."""
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
    except Exception as error:  # whatever a family does not expect of a caller that is not the library
        raise ValueError(
            f"model {folder} ({policy.config.model_type}) cannot be computed with our masks and cache: "
            f"{str(error)[:300] or type(error).__name__}; families that can are {WORK}"
        ) from error
    finally:
        policy.precision = precision
    for what, ours in found.items():
        gap = float((ours - expected[-len(ours) :]).abs().max())
        if not gap <= 1e-4 * (1 + float(expected.abs().max())):
            extra = [name for name in CHANGES_LOGITS if getattr(policy.config, name, None)]
            raise ValueError(
                f"model {folder} ({policy.config.model_type}): {what} gives logits that differ from the model's own by "
                f"{gap:.3g}, so training it would be wrong"
                + (f"; it has {', '.join(extra)}, which is not supported" if extra else "")
                + f"; families that work are {WORK}"
            )


def decoded_with_cache(policy: TransformersPolicy, tokens: Tensor) -> Tensor:
    """Logits [T / 2, V] of one row's second half, token by token, after its first half was cached as a prompt."""
    half, zero = tokens.shape[1] // 2, torch.zeros(1, dtype=torch.int64, device=tokens.device)
    cache = policy.new_cache(slots=1, positions=tokens.shape[1])
    prefill = Prefill(tokens=tokens[:, :half], rows=zero, prompts=zero)
    steps = [
        cache.logits(tokens[:, position], zero + position, prefill if position == half else None)[0]
        for position in range(half, tokens.shape[1])
    ]
    return torch.stack(steps)
