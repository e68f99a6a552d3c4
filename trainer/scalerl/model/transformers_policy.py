"""Any causal language model that `transformers` loads, as a policy: Llama, Qwen, Mistral, Mixtral, Qwen-MoE, ...

The body is the library's. The head is ours, so that its precision is a setting and a tied embedding is its matrix on
both sides. If a family changes its logits after that product, or caches more than keys and values, our result would be
wrong: when weights are loaded, our logits are compared with the model's own, and a model whose logits differ is
refused.

The library calls `update` of the cache it is given in every attention layer; ours writes into one preallocated tensor
and hands back what the layer may see, and a mask of our own says which of it each row has reached.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, Cache, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from scalerl.model.kv_cache import KVCache, Prefill
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32, Policy, Precision, States, draw_normal
from scalerl.model.router import Routing
from scalerl.model.size import ModelSize
from scalerl.model.transformers_masks import attention_masks, head_size, refuse_positions
from scalerl.model.transformers_weights import exported, import_into
from scalerl.recipe.models import NUM_EXPERTS
from scalerl.weights.hugging_face import Weights

Pair = tuple[Tensor, Tensor]
PROBE_LENGTH = 12
"""Tokens of the forward pass that loaded weights are compared on."""
CHANGES_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "output_multiplier_scale")
"""What some families do to logits after the head; named where it is why a model is refused."""
SWITCHED_OFF = ("attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "router_jitter_noise")
"""Noise of pre-training: generator and trainer must give a token the same probability."""


class TransformersPolicy(Policy):
    """A `PreTrainedModel` under our head."""

    def __init__(self, model: PreTrainedModel, precision: Precision = FP32) -> None:
        super().__init__(precision)
        if not isinstance(model.get_output_embeddings(), nn.Linear) or model.base_model is model:
            raise ValueError(
                f"{model.config.model_type} has no language-model head over a body; it cannot be trained here"
            )
        self.model = model.eval()
        self.config = model.config
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
            idle = experts - experts * self.config.num_experts_per_tok // self.num_experts
        width = self.config.num_hidden_layers * self.config.num_attention_heads * head_size(self.config)
        return ModelSize(parameters=numbers, active_parameters=numbers - idle, attention_width=width)

    @property
    def num_experts(self) -> int:
        """Experts of a block, 0 in a dense model."""
        return next((number for name in NUM_EXPERTS if (number := getattr(self.config, name, None))), 0)

    def states(self, tokens_BT: Tensor) -> States:
        """Final hidden states [B, T, hidden] of right-padded rows."""
        length = tokens_BT.shape[1]
        position_T = torch.arange(length, device=tokens_BT.device)
        seen_TT = position_T <= position_T[:, None]
        return self.body(tokens_BT, position_T[None], seen_TT[None], position_T[:, None] - position_T)

    def packed_states(self, tokens_N: Tensor, packing: Packing) -> States:
        """Final hidden states [N, hidden] of the same tokens without padding."""
        position_N = packing.position_N
        distance_NN = position_N[:, None] - position_N
        states = self.body(tokens_N[None], position_N[None], packing.may_attend()[None], distance_NN)
        return States(hidden=states.hidden[0], routing=states.routing)

    def body(self, tokens: Tensor, positions: Tensor, seen: Tensor, distance: Tensor, cache: Any = None) -> States:
        """The library's body on [R, W] tokens; `seen` [R or 1, W, K] and `distance` say what a token may attend to."""
        masks = attention_masks(self.config, seen, distance)
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
        return States(hidden=output.last_hidden_state.float(), routing=routing)

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
        theirs = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="sdpa", experts_implementation="eager"
        )
        refuse_unless_same(TransformersPolicy(theirs), folder)
        self.model.load_state_dict(theirs.state_dict())


class TransformersCache(KVCache):
    """Decodes a `TransformersPolicy`; keys have as many heads as the model's keys."""

    def __init__(self, policy: TransformersPolicy, *, slots: int, positions: int) -> None:
        config = policy.config
        refuse_positions(config, positions)
        super().__init__(
            layers=config.num_hidden_layers,
            slots=slots,
            heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
            positions=positions,
            head_size=head_size(config),
            device=policy.device,
        )
        self.policy = policy

    def logits(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows."""
        if prefill is not None:
            width = prefill.tokens.shape[1]
            position_T = torch.arange(width, device=prefill.tokens.device)
            distance_TT = position_T[:, None] - position_T
            prompts = PromptWriter(self.kv, prefill)
            self.policy.body(prefill.tokens, position_T[None], (distance_TT >= 0)[None], distance_TT, prompts)
        reach = int(position_n.max()) + 1
        distance_n1T = position_n[:, None, None] - torch.arange(reach, device=position_n.device)
        rows = RowWriter(self.kv, position_n, reach)
        states = self.policy.body(tokens_n[:, None], position_n[:, None], distance_n1T >= 0, distance_n1T, rows)
        return self.policy.logits(states.hidden[:, 0])


class RowWriter(Cache):
    """Takes one token of each row, each at its own position."""

    def __init__(self, kv: Tensor, position_n: Tensor, reach: int) -> None:
        super().__init__(layers=[])
        self.kv, self.position_n, self.reach = kv, position_n, reach
        self.row_n = torch.arange(len(position_n), device=position_n.device)

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [n, heads, 1, D]; what each row may attend to, [n, heads, reach, D]."""
        layer = self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[self.row_n, :, which, self.position_n] = new[:, :, 0].to(layer.dtype)
        seen = layer[: len(self.row_n), :, :, : self.reach]
        return seen[:, :, 0], seen[:, :, 1]


class PromptWriter(Cache):
    """Takes whole prompts and copies each to its rows."""

    def __init__(self, kv: Tensor, prefill: Prefill) -> None:
        super().__init__(layers=[])
        self.kv, self.prefill = kv, prefill

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [P, heads, W, D]; a prompt attends to itself."""
        rows, prompts = self.prefill.rows, self.prefill.prompts
        for which, new in enumerate((key_states, value_states)):
            self.kv[layer_idx, rows, :, which, : new.shape[2]] = new[prompts].to(self.kv.dtype)
        return key_states, value_states


@torch.no_grad()
def refuse_unless_same(policy: TransformersPolicy, folder: Path) -> None:
    """Raises ValueError unless body, head and cache give the logits that the model itself gives on a short input."""
    vocabulary = policy.head_weights()[0].shape[0]
    tokens = torch.arange(PROBE_LENGTH, device=policy.device)[None] * 7919 % vocabulary
    expected = policy.model(tokens).logits[0].float()
    tolerance = 1e-4 * (1 + float(expected.abs().max()))
    whole = policy.logits(policy.hidden(tokens))[0]
    stepwise = []
    cache = policy.new_cache(slots=1, positions=PROBE_LENGTH)
    half = PROBE_LENGTH // 2
    zero = torch.zeros(1, dtype=torch.int64, device=policy.device)
    prefill = Prefill(tokens=tokens[:, :half], rows=zero, prompts=zero)
    for position in range(half, PROBE_LENGTH):
        step = cache.logits(tokens[:, position], zero + position, prefill if position == half else None)
        stepwise.append(step[0])
    for ours, what in ((whole, "hidden states times the head"), (torch.stack(stepwise), "decoding with cached keys")):
        gap = float((ours - expected[-len(ours) :]).abs().max())
        if not gap <= tolerance:
            extra = [name for name in CHANGES_LOGITS if getattr(policy.config, name, None)]
            raise ValueError(
                f"model {folder} ({policy.config.model_type}): {what} gives logits that differ from the model's own by "
                f"{gap:.3g}, so training it would be wrong"
                + (f"; it has {', '.join(extra)}, which is not supported" if extra else "")
            )
